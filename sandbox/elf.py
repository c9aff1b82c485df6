"""What the dynamic loader will see in a shared object: needed libraries and undefined symbols.

Read from the program headers and the dynamic section, as the loader does; section headers are only a linker's
courtesy. 64-bit little-endian ELF (System V ABI, chapter 5). The file is untrusted: every read is bounds-checked.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_GNU_HASH = 1, 4, 5, 6, 0x6FFFFEF5
_SYMBOL = struct.Struct("<IBBHQQ")
_MOST_SYMBOLS = 1 << 20


class BadElf(ValueError):
    """Not a shared object that this module can read."""


@dataclass(frozen=True)
class Dynamic:
    """The dynamic interface of a shared object."""

    needed: tuple[str, ...]
    """DT_NEEDED: SONAMEs of the libraries that loading it loads."""
    undefined: tuple[str, ...]
    """Symbols that it takes from others."""
    defined: tuple[str, ...]
    """Symbols that it offers to others."""


def read(data: bytes) -> Dynamic:
    """The dynamic interface of the shared object with these bytes.

    Raises:
        BadElf: not a 64-bit little-endian ELF file with a dynamic section, or a damaged one.
    """
    try:
        return _Image(data).dynamic()
    except (struct.error, IndexError, OverflowError) as e:
        raise BadElf(f"a damaged shared object: {e}") from e


class _Image:
    """The file, addressed as it will lie in memory."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise BadElf("not a 64-bit little-endian ELF file")
        self.data = data
        self.headers = tuple(self._program_headers())

    def _program_headers(self) -> Iterator[tuple[int, int, int, int]]:
        """(type, offset in file, address, bytes in file) of each segment."""
        (start,) = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        for i in range(count):
            kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", self.data, start + i * size)
            yield kind, offset, address, length

    def offset(self, address: int) -> int:
        for kind, offset, start, length in self.headers:
            if kind == _PT_LOAD and start <= address < start + length:
                return offset + address - start
        raise BadElf(f"address {address:#x} lies in no loaded segment")

    def dynamic(self) -> Dynamic:
        entries = tuple(self._dynamic_entries())
        table = dict(entries)
        strings = self.offset(table[_DT_STRTAB]) if _DT_STRTAB in table else 0
        needed = tuple(self._string(strings + value) for tag, value in entries if tag == _DT_NEEDED)
        undefined: list[str] = []
        defined: list[str] = []
        for name, section in self._symbols(table, strings):
            (defined if section else undefined).append(name)
        return Dynamic(needed, tuple(undefined), tuple(defined))

    def _dynamic_entries(self) -> Iterator[tuple[int, int]]:
        segment = next((h for h in self.headers if h[0] == _PT_DYNAMIC), None)
        if segment is None:
            raise BadElf("no dynamic section")
        for at in range(segment[1], segment[1] + segment[3] - 15, 16):
            tag, value = struct.unpack_from("<QQ", self.data, at)
            if tag == 0:
                return
            yield tag, value

    def _symbols(self, table: dict[int, int], strings: int) -> Iterator[tuple[str, int]]:
        if _DT_SYMTAB not in table:
            return
        start = self.offset(table[_DT_SYMTAB])
        for i in range(1, self._symbol_count(table)):
            name, _, _, section, _, _ = _SYMBOL.unpack_from(self.data, start + i * _SYMBOL.size)
            if name:
                yield self._string(strings + name), section

    def _symbol_count(self, table: dict[int, int]) -> int:
        """The symbol table's length, which only the hash tables tell.

        With nothing defined, GNU's table does not count the undefined ones; our links ask for both tables.
        """
        if _DT_HASH in table:
            count: int = struct.unpack_from("<I", self.data, self.offset(table[_DT_HASH]) + 4)[0]
        elif _DT_GNU_HASH in table:
            count = self._gnu_hash_count(self.offset(table[_DT_GNU_HASH]))
        else:
            raise BadElf("symbols without a hash table")
        if count > _MOST_SYMBOLS:
            raise BadElf(f"{count} symbols")
        return count

    def _gnu_hash_count(self, at: int) -> int:
        """One more than the greatest index in the last chain; undefined symbols come before `first`."""
        buckets, first, bloom, _ = struct.unpack_from("<IIII", self.data, at)
        chains_at = at + 16 + bloom * 8 + buckets * 4
        heads: tuple[int, ...] = struct.unpack_from(f"<{buckets}I", self.data, at + 16 + bloom * 8)
        last = max(heads, default=0)
        if last < first:
            return first
        while not struct.unpack_from("<I", self.data, chains_at + (last - first) * 4)[0] & 1:
            last += 1
        return last + 1

    def _string(self, at: int) -> str:
        end = self.data.find(b"\0", at, at + 4096)
        if end < 0:
            raise BadElf("a string outside the file")
        return self.data[at:end].decode(errors="replace")
