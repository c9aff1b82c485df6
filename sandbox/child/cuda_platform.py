"""The runner's view of one GPU, through cupy's thin binding of the CUDA runtime. No torch.

Times are taken by events on a stream of our own; it is non-blocking, so that work put on the legacy stream is not
ordered with it and shows as a difference between the events and the judge's clock. After every request the whole
device is synchronised, whatever stream the candidate used.
"""

import contextlib
import ctypes
from collections.abc import Callable, Generator, Sequence

from hiera_mcp.sandbox.child import device_memory
from hiera_mcp.sandbox.child.cudart import cuda_runtime
from hiera_mcp.sandbox.child.failure import CandidateFailure
from hiera_mcp.sandbox.child.stopwatch import FILLS

_STAGE_BYTES = 64 << 20

Call = Callable[[int], int]
"""Calls the candidate once on the buffer set with this number; returns its code."""
Deliver = Callable[[int], object]
"""Brings the results of that call into the set's output buffers, where the candidate has not written them itself."""


class CudaPlatform:
    """Memory, stream and events of one GPU.

    Args:
        index: the GPU as this process sees it.
    """

    def __init__(self, index: int) -> None:
        runtime = self._cuda = cuda_runtime()
        self._index = index
        runtime.setDevice(index)
        runtime.free(0)  # creates the context now, and not inside a timed region
        self.counts = None  # what the processor spends says nothing of a kernel
        self.stream: int = runtime.streamCreateWithFlags(runtime.streamNonBlocking)
        l2 = runtime.deviceGetAttribute(runtime.cudaDevAttrL2CacheSize, index)
        self._flush_bytes: int = max(2 * l2, 64 << 20)
        self._flush: int = runtime.malloc(self._flush_bytes)
        self._fill = 0

    def map(self, size: int, writable: bool, fd: int) -> int:
        """Map an arena and close the descriptor; returns its device address."""
        return device_memory.open_shared(fd, size, self._index, writable).address

    def allocate(self, size: int) -> int:
        """The address of new device memory, which lives as long as the process."""
        return int(self._cuda.malloc(size))

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy device memory by way of the host: what comes from there counts as written for a checker, whoever filled
        the source."""
        buffer = ctypes.create_string_buffer(min(size, _STAGE_BYTES) or 1)
        host = ctypes.addressof(buffer)
        for start in range(0, size, _STAGE_BYTES):
            n = min(_STAGE_BYTES, size - start)
            self._cuda.memcpy(host, source + start, n, self._cuda.memcpyDeviceToHost)
            self._cuda.memcpy(target + start, host, n, self._cuda.memcpyHostToDevice)

    def once(self, call: Callable[[], int], after: Callable[[], object] | None = None) -> tuple[int, int]:
        """Run something once on the stream; its code, and its time in nanoseconds. `after` follows untimed."""
        start, end = self._event(), self._event()
        self._cuda.eventRecord(start, self.stream)
        code = call()
        self._cuda.eventRecord(end, self.stream)
        if after is not None and not code:
            after()
        self._cuda.deviceSynchronize()
        return code, self._elapsed(start, end)

    def each(self, call: Call, deliver: Deliver, sets: Sequence[int], flush: bool) -> tuple[int, list[int]]:
        """Call for each buffer set, each timed by itself: the first code that is not 0, and nanoseconds.

        The flush is queued right before the call, so that the launch is hidden behind it, as in KernelBench and in the
        judge's timing of the reference.
        """
        times: list[int] = []
        for s in sets:
            if flush:
                self._flush_l2()
            code, ns = self.once(lambda s=s: call(s), lambda s=s: deliver(s))
            times.append(ns)
            if code:
                return code, times
        return 0, times

    def _flush_l2(self, fills: int = FILLS) -> None:
        """Queue a write of more than L2 holds. Lines that the candidate has marked as persisting would outlive it, and become
        ordinary ones first (CUDA driver API, cuCtxResetPersistingL2Cache; not supported everywhere, as such lines are not).
        """
        ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache()
        for _ in range(fills):
            self._fill ^= 0xFF
            self._cuda.memsetAsync(self._flush, self._fill, self._flush_bytes, self.stream)

    def batch(self, call: Call, deliver: Deliver, sets: Sequence[int]) -> tuple[int, list[int]]:
        """Call and deliver for each buffer set without a pause, timed together."""

        def all_of_them() -> int:
            for s in sets:
                code = call(s)
                if code:
                    return code
                deliver(s)
            return 0

        code, ns = self.once(all_of_them)
        return code, [ns]

    def cold_batch(self, call: Call, deliver: Deliver, sets: Sequence[int], fills: int) -> tuple[int, list[int]]:
        """As `batch`, with a flush before each call, written `fills` times."""

        def flushed(s: int) -> int:
            self._flush_l2(fills)
            return call(s)

        return self.batch(flushed, deliver, sets)

    def replay(self, call: Call, sets: Sequence[int], times: int) -> int:
        """Capture one call for each buffer set into a graph; nanoseconds that `times` replays of it take.

        Raises:
            CandidateFailure: the calls cannot be captured.
        """
        graph = self._captured(call, sets)
        try:
            self._cuda.graphLaunch(graph, self.stream)  # uploads it
            self._cuda.deviceSynchronize()

            def all_of_them() -> int:
                for _ in range(times):
                    self._cuda.graphLaunch(graph, self.stream)
                return 0

            return self.once(all_of_them)[1]
        finally:
            self._cuda.graphExecDestroy(graph)

    def _captured(self, call: Call, sets: Sequence[int]) -> int:
        """An executable graph. Captured strictly: what allocates or waits is refused, and not done behind the graph."""
        codes: list[int] = []
        try:
            self._cuda.streamBeginCapture(self.stream, self._cuda.streamCaptureModeGlobal)
            try:
                codes += [call(s) for s in sets]
            finally:
                graph = self._cuda.streamEndCapture(self.stream)
            executable = self._cuda.graphInstantiate(graph)
            self._cuda.graphDestroy(graph)
        except self._cuda.CUDARuntimeError as e:
            raise CandidateFailure(f"the calls cannot be captured ({_first_code(codes) or e})") from e
        if any(codes):
            raise CandidateFailure(f"the calls cannot be captured (hiera_run returned {_first_code(codes)})")
        return int(executable)

    @contextlib.contextmanager
    def marked(self) -> Generator[None]:
        """What runs inside is what a profiler shall see (CUDA driver API, cuProfilerStart and cuProfilerStop)."""
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuProfilerStart()
        try:
            yield
        finally:
            driver.cuProfilerStop()

    def describe(self, code: int) -> str:
        """The CUDA name of a return code, since hiera_run usually returns cudaGetLastError()."""
        return f" ({self._cuda.CUDARuntimeError(code)})" if 0 < code < 1000 else ""

    def mark(self) -> None:
        """Wait for everything on the device; raises CUDARuntimeError when a kernel failed."""
        self._cuda.deviceSynchronize()

    def _event(self) -> int:
        # Fresh ones each time: a candidate cannot know their handles in advance.
        return self._cuda.eventCreate()

    def _elapsed(self, start: int, end: int) -> int:
        ns = int(self._cuda.eventElapsedTime(start, end) * 1e6)
        self._cuda.eventDestroy(start)
        self._cuda.eventDestroy(end)
        return ns


def _first_code(codes: Sequence[int]) -> int:
    """The first code that is not 0; 0 when there is none."""
    return next((code for code in codes if code), 0)
