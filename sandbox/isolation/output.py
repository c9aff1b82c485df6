"""What a box printed: all of it counted, its beginning and its end kept."""

HEAD_BYTES = 64 << 10
TAIL_BYTES = 4 << 10


class Output:
    """Collects output in bounded memory."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[:-TAIL_BYTES]

    def text(self) -> str:
        """The whole output, or its two ends with a line between them that counts what was left out."""
        missing = self.total - len(self._head) - len(self._tail)
        if not missing:
            return (self._head + self._tail).decode("utf-8", "replace")
        gap = f"\n… {missing} bytes left out …\n"
        return self._head.decode("utf-8", "replace") + gap + self._tail.decode("utf-8", "replace")
