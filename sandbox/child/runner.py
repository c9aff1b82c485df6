"""The untrusted side: loads one candidate, calls it as the judge asks, reports return codes and times as claims.

    python -P -m hiera_mcp.sandbox.child.runner --fd N --device cpu|cuda:K [--box /box] [--private]

Requests (JSON, see wire.py) and their answers; a failed one is answered by {"ok": false, "error": text}:

    load     {kind, interface}                      {workspace: [bytes per case], has_prepare, …}
    buffers  {arenas, params, cases} + descriptors  {}
    prepare  {case}                                 {ns}
    run      {case, sets, mode, flush} + inputs     {ns: [..]}
             + {inputs: [[arena, offset, bytes], ..]} and their descriptors: what is to be mapped there first
             + {look: [[index, ..] per output]}: elements to read right after the call      {seen: [hex per output]}
             + {hold: true}: a ModelNew's results are kept until the next one's are there
             mode: `each` call timed by itself; `batch`: all together; `empty`: as `each`, but nothing is called;
             `profile`: as `each`, and each call is marked for a profiler; also {counts} on cpu (host_counters.py)
    sample   {case, set}                            {samples}  (cpu: of many calls, see host_samples.py)
    cold     {case, sets, calls}                    {ns: [one for all]}  (CUDA: each call, or none, behind a flush)
    replay   {case, sets, times}                    {ns: [one for all]}  (CUDA: a graph of the calls, replayed)
    quit     {}                                     (ends)

With --private the candidate works on copies in memory of this process (private_buffers.py), for a checker around it.
For the C ABI on cpu only the standard library is imported.
"""

import argparse
import os
import socket
from pathlib import Path
from typing import Any

from hiera_mcp.sandbox.child.failure import CandidateFailure
from hiera_mcp.sandbox.child.wire import Closed, receive, send


class Runner:
    """State of one runner: a platform, and the candidate once it is loaded."""

    def __init__(self, device: str, box: Path, private: bool = False) -> None:
        self._device = device
        self._box = box
        self._private = private
        self._copies: Any = None
        self._platform: Any = None
        self._candidate: Any = None
        self._base: list[int] = []
        self._holds = False

    def answer(self, request: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        """Do what is asked.

        Raises:
            CandidateFailure: the candidate failed; anything else that is raised is its doing as well, or ours.
        """
        op = request["op"]
        if op == "load":
            return self._load(request)
        if op == "buffers":
            return self._buffers(request, fds)
        if op == "prepare":
            return self._prepare(request["case"])
        if op == "run":
            return self._run(request, fds)
        if op == "cold":
            return self._cold(request)
        if op == "replay":
            return self._replay(request)
        if op == "sample":
            return self._sample(request["case"], request["set"])
        raise ValueError(f"unknown op {op!r}")

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        self._platform = self._platform or _platform(self._device)
        interface = request["interface"]
        if request["kind"] == "python":
            from hiera_mcp.sandbox.child.python_candidate import PythonCandidate

            self._candidate = PythonCandidate(self._box, interface, self._platform, self._device)
        else:
            from hiera_mcp.sandbox.child.c_candidate import CCandidate

            self._candidate = CCandidate(self._box, interface, self._platform)
        if self._private:
            from hiera_mcp.sandbox.child.private_buffers import PrivateBuffers

            self._copies = PrivateBuffers(self._platform, interface)
        return {"workspace": self._candidate.workspace_bytes(), "has_prepare": self._candidate.has_prepare()}

    def _buffers(self, request: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        rest = iter(fds)
        for a in request["arenas"]:
            room = a["reserved"]
            at = (
                self._platform.reserve(a["bytes"])
                if room
                else self._platform.map(a["bytes"], a["writable"], next(rest))
            )
            self._base.append(at)

        def addresses(places: list[list[int]]) -> list[int]:
            return [self._base[arena] + offset for arena, offset in places]

        cases = [
            {
                "workspace": addresses(case["workspace"])[0] if case["workspace"] else None,
                "sets": [{k: addresses(places) for k, places in s.items()} for s in case["sets"]],
            }
            for case in request["cases"]
        ]
        self._bind(addresses(request["params"]), cases)
        return {}

    def _bind(self, params: list[int], cases: list[dict[str, Any]]) -> None:
        if self._copies is not None:
            params = self._copies.params(params)
            sizes = self._candidate.workspace_bytes()
            cases = [self._copies.case(n, case, sizes[n]) for n, case in enumerate(cases)]
        self._candidate.bind(params, cases)

    def _prepare(self, case: int) -> dict[str, Any]:
        if self._copies is not None:
            self._copies.take_params()
        code, ns = self._platform.once(lambda: self._candidate.prepare(case))
        self._accept("hiera_prepare", code)
        return {"ns": ns, "unused": list(self._candidate.unused)}

    def _run(self, request: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        self._take_inputs(request.get("inputs", []), fds)
        if self._copies is None:
            return self._calls(request)
        case, sets = request["case"], request["sets"]
        for s in sets:
            self._copies.take_inputs(case, s)
        answer = self._calls(request)
        for s in sets:
            self._copies.give_outputs(case, s)
        return answer

    def _take_inputs(self, places: list[list[int]], fds: tuple[int, ...]) -> None:
        """Map inputs where the candidate knows them; before it has buffers (a rehearsal), anywhere and not for long."""
        self._platform = self._platform or _platform(self._device)
        for (arena, offset, size), fd in zip(places, fds, strict=True):
            if self._base:
                self._platform.map_at(self._base[arena] + offset, size, fd)
            else:
                self._platform.unmap(self._platform.map(size, False, fd), size)

    def _calls(self, request: dict[str, Any]) -> dict[str, Any]:
        case, sets = request["case"], request["sets"]
        looks = [self._candidate.look(case, s, request["look"]) for s in sets] if "look" in request else []
        seen: list[str] = []
        if self._holds and not request.get("hold"):
            self._candidate.let_go()
        self._holds = bool(request.get("hold"))

        def call(s: int) -> int:
            return self._candidate.run(case, s)

        def marked(s: int) -> int:  # without the delivery, whose copies are none of the candidate's
            with self._platform.marked():
                return call(s)

        def deliver(s: int) -> None:
            if looks:
                seen.extend(looks.pop(0)())
            if self._holds:
                self._candidate.hold()
            self._candidate.deliver(case, s)

        if request["mode"] == "empty":
            code, ns = self._platform.each(_nothing, _nothing, sets, request["flush"])
        elif request["mode"] == "profile":
            code, ns = self._platform.each(marked, deliver, sets, request["flush"])
            self._accept("hiera_run", code)
            return {"ns": ns, "counts": self._platform.counts}
        elif request["mode"] == "batch":
            code, ns = self._platform.batch(call, deliver, sets)
        else:
            code, ns = self._platform.each(call, deliver, sets, request["flush"])
        self._accept("hiera_run", code)
        return {"ns": ns, "seen": seen}

    def _cold(self, request: dict[str, Any]) -> dict[str, Any]:
        case = request["case"]

        def call(s: int) -> int:
            return self._candidate.run(case, s)

        def deliver(s: int) -> None:
            self._candidate.deliver(case, s)

        called = (call, deliver) if request["calls"] else (_nothing, _nothing)
        code, ns = self._platform.cold_batch(*called, request["sets"], request["fills"])
        self._accept("hiera_run", code)
        return {"ns": ns}

    def _replay(self, request: dict[str, Any]) -> dict[str, Any]:
        case = request["case"]

        def call(s: int) -> int:
            return self._candidate.run(case, s)

        ns = self._platform.replay(call, request["sets"], request["times"])
        self._platform.mark()
        return {"ns": [ns]}

    def _sample(self, case: int, s: int) -> dict[str, Any]:
        own = self._box / f"case{case}.so"
        code, samples = self._platform.sample(lambda: self._candidate.run(case, s), own)
        self._accept("hiera_run", code)
        return {"samples": samples}

    def _accept(self, function: str, code: int) -> None:
        self._platform.mark()
        if code:
            raise CandidateFailure(self._candidate.explain(function, code))


def _nothing(_buffers: int) -> int:
    return 0


def _platform(device: str) -> Any:
    if device == "cpu":
        from hiera_mcp.sandbox.child.host_platform import HostPlatform

        return HostPlatform()
    from hiera_mcp.sandbox.child.cuda_platform import CudaPlatform

    return CudaPlatform(int(device.partition(":")[2] or 0))


def serve(sock: socket.socket, runner: Runner) -> None:
    """Answer requests until `quit` or until the judge is gone."""
    while True:
        try:
            request, fds = receive(sock)
            if request.get("op") == "quit":
                return
            _answer(sock, runner, request, fds)
        except Closed:
            return


def _answer(sock: socket.socket, runner: Runner, request: dict[str, Any], fds: tuple[int, ...]) -> None:
    try:
        send(sock, {"ok": True, **runner.answer(request, fds)})
    except CandidateFailure as e:
        send(sock, {"ok": False, "error": str(e)})
    except Exception as e:  # a sticky CUDA error, say: nothing can be asked of this process any more
        send(sock, {"ok": False, "error": f"{type(e).__name__}: {e}"})
        raise


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--box", type=Path, default=Path("/box"))
    parser.add_argument("--private", action="store_true")
    args = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads would disturb the judge's reference
    os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    serve(socket.socket(fileno=args.fd), Runner(args.device, args.box, args.private))


if __name__ == "__main__":
    main()
