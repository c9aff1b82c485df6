"""A candidate with the plain C ABI: /box/case0.so, /box/case1.so, … called through the flat functions by ctypes."""

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hiera_mcp.sandbox.child.failure import CandidateFailure
from hiera_mcp.sandbox.child.private_buffers import WIDTHS

FLAT_ABI = 1

Pointers = Sequence[int]


class CCandidate:
    """The libraries of one candidate.

    Raises:
        CandidateFailure: a library cannot be loaded, or was built for another contract.
    """

    unused: tuple[str, ...] = ()

    def __init__(self, box: Path, interface: dict[str, Any], platform: Any) -> None:
        self._platform = platform
        self._libraries = [_load(box / f"case{n}.so", interface["id"]) for n in range(len(interface["cases"]))]
        self._params: Any = None
        self._workspaces: list[int | None] = []
        self._calls: dict[tuple[int, int], Any] = {}
        self._outputs: dict[tuple[int, int], Sequence[int]] = {}
        self._cases: list[dict[str, Any]] = interface["cases"]

    def workspace_bytes(self) -> list[int]:
        """What each case asks for, in bytes."""
        return [lib.hiera_flat_workspace_bytes() for lib in self._libraries]

    def has_prepare(self) -> bool:
        return any(lib.hiera_flat_has_prepare() for lib in self._libraries)

    def bind(self, params: Pointers, cases: Sequence[dict[str, Any]]) -> None:
        """Take the addresses of all buffers; `cases[n]` is {"workspace", "sets": [{"inputs", "outputs"}]}."""
        self._params = _array(params)
        self._workspaces = [case["workspace"] for case in cases]
        stream = self._platform.stream
        for n, case in enumerate(cases):
            for s, buffers in enumerate(case["sets"]):
                inputs, outputs = _array(buffers["inputs"]), _array(buffers["outputs"])
                self._outputs[n, s] = buffers["outputs"]
                self._calls[n, s] = (inputs, self._params, outputs, case["workspace"], stream)

    def prepare(self, case: int) -> int:
        """hiera_prepare of one case; its code."""
        return self._libraries[case].hiera_flat_prepare(self._params, self._workspaces[case], self._platform.stream)

    def run(self, case: int, buffers: int) -> int:
        """hiera_run of one case on one set of buffers; its code."""
        return self._libraries[case].hiera_flat_run(*self._calls[case, buffers])

    def deliver(self, case: int, buffers: int) -> None:
        """Nothing: hiera_run has written the output buffers itself."""

    def look(self, case: int, buffers: int, places: Sequence[Sequence[int]]) -> Callable[[], list[str]]:
        """Reads elements of the outputs, by index, when it is called: their bytes in hex, one text per output."""
        rows = zip(self._outputs[case, buffers], self._cases[case]["outputs"], places, strict=True)
        wanted = [[(a + WIDTHS[spec["dtype"]] * i, WIDTHS[spec["dtype"]]) for i in found] for a, spec, found in rows]

        def read() -> list[str]:
            return [b"".join([ctypes.string_at(at, size) for at, size in row]).hex() for row in wanted]

        return read

    def explain(self, function: str, code: int) -> str:
        return f"{function} returned {code}{self._platform.describe(code)}"


def _load(path: Path, contract: str) -> ctypes.CDLL:
    try:
        lib = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as e:
        raise CandidateFailure(f"{path.name} cannot be loaded: {e}") from e
    pointer, array = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
    try:
        lib.hiera_flat_abi.restype = ctypes.c_int64
        lib.hiera_flat_contract.restype = ctypes.c_char_p
        lib.hiera_flat_workspace_bytes.restype = ctypes.c_size_t
        lib.hiera_flat_prepare.argtypes = [array, pointer, pointer]
        lib.hiera_flat_run.argtypes = [array, array, array, pointer, pointer]
    except AttributeError as e:
        raise CandidateFailure(f"{path.name} has no flat binding: {e}") from e
    built_for = (lib.hiera_flat_contract() or b"").decode(errors="replace")
    if lib.hiera_flat_abi() != FLAT_ABI or built_for != contract:
        raise CandidateFailure(f"{path.name} was built for contract {built_for}, not for {contract}: build it again")
    return lib


def _array(pointers: Pointers) -> Any:
    return (ctypes.c_void_p * max(1, len(pointers)))(*pointers)
