"""One evaluation's shared buffers and the runner that works on them, as the judge sees both."""

import os
import random
from collections.abc import Sequence
from typing import Any, cast

from hiera_mcp.sandbox.child.buffers import Arena, Handle, Spec, spec_bytes, spec_elements
from hiera_mcp.sandbox.child.compare import as_bits, same_bits
from hiera_mcp.sandbox.child.failure import CandidateFailure
from hiera_mcp.sandbox.child.fresh_inputs import FreshInputs, scratch
from hiera_mcp.sandbox.child.host_samples import STOPPED_S
from hiera_mcp.sandbox.child.machine import free_memory
from hiera_mcp.sandbox.child.peer import Peer, RunnerLost, is_natural, naturals

MAX_WORKSPACE = 16 << 30
MOST_SETS, SETS_BYTES = 16, 32 << 20
LOOKS = 8
"""Elements per output that the runner reads right after a call. Few: the reading takes time, and there are many calls."""
STRETCH = 1024
"""Elements in a row that are withheld until right before a timed call."""
_NAN = {"float64": (0x7FF8 << 48, 51), "float32": (0x7FC00000, 22), "float16": (0x7E00, 9), "bfloat16": (0x7FC0, 6)}
"""A quiet NaN's bits, and how many of its low bits are free for a canary."""

PARAMS, INPUTS, OUTPUTS, WORKSPACE = range(4)
"""Numbers of the arenas."""


class Workbench:
    """Buffers in `sets` copies (so that addresses change from call to call), and calls on them.

    Args:
        peer: the runner.
        contract: the contract as JSON.
        device: `cpu` or `cuda:K`.
        options: `call_s` and `load_s`, in seconds.
    """

    def __init__(self, peer: Peer, contract: dict[str, Any], device: str, options: dict[str, Any]) -> None:
        self._peer = peer
        self._contract = contract
        self._device = device
        self._call_s = float(options.get("call_s", 20.0))
        self._load_s = float(options.get("load_s", 60.0))
        self._arenas: list[Arena | FreshInputs] = []
        self._given: dict[tuple[int, int], list[Any]] = {}
        self._given_params: list[Any] = []
        self._poison: dict[tuple[int, int], list[int]] = {}
        self.sets = sets_of_buffers(contract, device)
        self.has_prepare = False
        self._late: list[str] = []
        self._python = False

    def load(self, kind: str, interface: dict[str, Any]) -> None:
        """Let the runner load the candidate, make all buffers, and hand them over.

        Raises:
            CandidateFailure, RunnerLost, RunnerTimeout: see Peer.ask.
        """
        reply = self._peer.ask({"op": "load", "kind": kind, "interface": interface}, self._load_s)
        self.has_prepare = reply.get("has_prepare") is True
        self._python = kind == "python"
        workspace = self._workspace_bytes(reply.get("workspace"))
        self._release()
        self._allocate(workspace)
        handles = [a.handle for a in self._arenas]
        fds = tuple(h.fd for h in handles if h.fd >= 0)
        message = {"op": "buffers", "arenas": [_message(h) for h in handles], **self._places(workspace)}
        self._peer.ask(message, self._load_s, fds)

    def _workspace_bytes(self, claimed: Any) -> list[int]:
        cases = len(self._contract["cases"])
        claims = cast("list[Any]", claimed) if isinstance(claimed, list) else []
        if len(claims) != cases:
            raise RunnerLost("the runner answered `load` without the size of the workspace")
        sizes: list[int] = [n if is_natural(n) else MAX_WORKSPACE + 1 for n in claims]
        if sum(sizes) > MAX_WORKSPACE:
            raise CandidateFailure(f"hiera_workspace_bytes asks for {max(sizes)} bytes, more than {MAX_WORKSPACE}")
        return sizes

    def _allocate(self, workspace: list[int]) -> None:
        cases = self._contract["cases"]
        spaces = [{"name": f"workspace{n}", "shape": [size], "dtype": "uint8"} for n, size in enumerate(workspace)]
        of: dict[int, tuple[list[Spec], bool]] = {
            PARAMS: (list(self._contract["parameters"]), False),
            INPUTS: ([t for c in cases for _ in range(self.sets) for t in c["inputs"]], False),
            OUTPUTS: ([t for c in cases for _ in range(self.sets) for t in c["outputs"]], True),
            WORKSPACE: (spaces, True),
        }
        for n in (PARAMS, INPUTS, OUTPUTS, WORKSPACE):  # one by one, so that `close` frees what was made
            specs, writable = of[n]
            fresh = n == INPUTS and self._device == "cpu"
            self._arenas.append(FreshInputs(specs) if fresh else Arena(specs, writable, self._device))

    def _places(self, workspace: list[int]) -> dict[str, Any]:
        offsets = [a.layout.offsets for a in self._arenas]
        cases: list[dict[str, Any]] = []
        for c, size in enumerate(workspace):
            sets = [
                {
                    "inputs": [[INPUTS, offsets[INPUTS][i]] for i in self._range("inputs", c, s)],
                    "outputs": [[OUTPUTS, offsets[OUTPUTS][i]] for i in self._range("outputs", c, s)],
                }
                for s in range(self.sets)
            ]
            cases.append({"sets": sets, "workspace": [[WORKSPACE, offsets[WORKSPACE][c]]] if size else None})
        return {"params": [[PARAMS, o] for o in offsets[PARAMS]], "cases": cases}

    def _range(self, kind: str, case: int, s: int) -> range:
        """Numbers of the tensors of one case and set inside their arena."""
        cases = self._contract["cases"]
        before = sum(len(c[kind]) for c in cases[:case]) * self.sets
        count = len(cases[case][kind])
        return range(before + s * count, before + (s + 1) * count)

    def inputs(self, case: int, s: int) -> list[Any]:
        """The shared input tensors of a set."""
        return [self._arenas[INPUTS].views[i] for i in self._range("inputs", case, s)]

    def outputs(self, case: int, s: int) -> list[Any]:
        """The shared output tensors of a set."""
        return [self._arenas[OUTPUTS].views[i] for i in self._range("outputs", case, s)]

    def set_parameters(self, values: Sequence[Any]) -> float | None:
        """Hand parameters over and let the candidate prepare; seconds that it claims, None when it has no prepare."""
        self._given_params = [v.clone() for v in values]
        for view, value in zip(self._arenas[PARAMS].views, values, strict=True):
            view.copy_(value)
        self._synchronize()
        total = 0
        for case in range(len(self._contract["cases"])):
            reply = self._peer.ask({"op": "prepare", "case": case}, self._load_s)
            total += reply["ns"] if is_natural(reply.get("ns")) else 0
        return total / 1e9 if self.has_prepare else None

    def put(self, case: int, s: int, inputs: list[Any]) -> None:
        """Write inputs into a set, and poison its outputs. `inputs` stay the judge's own and must not change."""
        self._given[case, s] = inputs
        room = self._arenas[INPUTS]
        if isinstance(room, FreshInputs):
            room.fill(self._range("inputs", case, s), inputs)
        else:
            for view, value in zip(self.inputs(case, s), inputs, strict=True):
                view.copy_(value)
        self.poison(case, s)

    def withhold(self, case: int, s: int) -> list[list[slice]]:
        """Put other values over a few stretches of each input that `put` has written; returns where, for `release`.

        Nothing on `cpu`, where the runner has none of the inputs before the call.
        """
        if self._device == "cpu":
            return []
        places = [stretches(x.numel()) for x in self._given[case, s]]
        for view, where in zip(self.inputs(case, s), places, strict=True):
            flat = view.view(-1)
            for part in where:
                flat[part] = _other(flat[part])
        self._synchronize()
        return places

    def release(self, case: int, s: int, withheld: list[list[slice]]) -> None:
        """Bring the true values of what `withhold` has hidden."""
        if not withheld:
            return
        for view, value, where in zip(self.inputs(case, s), self._given[case, s], withheld, strict=True):
            for part in where:
                view.view(-1)[part] = value.reshape(-1)[part]

    def poison(self, case: int, s: int) -> None:
        """Fill the outputs of a set with a NaN that carries a random canary (integers: a random value)."""
        patterns = [poison_pattern(t["dtype"]) for t in self._contract["cases"][case]["outputs"]]
        for view, pattern in zip(self.outputs(case, s), patterns, strict=True):
            as_bits(view).fill_(pattern)
        self._poison[case, s] = patterns
        self._synchronize()

    def unwritten(self, case: int, s: int, number: int, output: Any) -> Any:
        """Boolean mask of the elements of `output` (a copy of output `number`) that still hold the poison."""
        return as_bits(output) == self._poison[case, s][number]

    def run(
        self, case: int, sets: Sequence[int], mode: str, flush: bool = False, hold: bool = False
    ) -> tuple[list[float], float]:
        """Let the candidate run: claimed seconds (one per call; one for a whole batch), and seconds outside.

        Raises:
            CandidateFailure, RunnerLost, RunnerTimeout: see Peer.ask.
        """
        request = {"op": "run", "case": case, "sets": list(sets), "mode": mode, "flush": flush}
        count = 1 if mode == "batch" else len(sets)
        looks = self._looks(case) if mode == "each" and len(sets) == 1 and self._device == "cpu" else []
        limit_s = self._call_s * max(1, len(sets))
        also = {**({"look": looks} if looks else {}), **({"hold": True} if hold and self._python else {})}
        reply = self._ask_with_inputs({**request, **also}, case, sets, limit_s)
        if looks:
            self._compare_looks(case, sets[0], looks, reply.get("seen"))
        return [n / 1e9 for n in naturals(reply, "run", "ns", count)], self._peer.seconds

    def _due(self, case: int, sets: Sequence[int]) -> tuple[dict[str, Any], tuple[int, ...]]:
        """The inputs that the runner does not have yet: what the request says of them, and their descriptors."""
        room = self._arenas[INPUTS]
        if not isinstance(room, FreshInputs):
            return {}, ()
        numbers = [self._range("inputs", case, s) for s in dict.fromkeys(sets)]
        places = [place for n in numbers if (place := room.due(n)) is not None]
        return {"inputs": [[INPUTS, start, size] for start, size, _ in places]}, tuple(fd for _, _, fd in places)

    def _ask_with_inputs(
        self, request: dict[str, Any], case: int, sets: Sequence[int], limit_s: float
    ) -> dict[str, Any]:
        """Ask, and hand over what the runner does not have yet of these sets' inputs."""
        due, fds = self._due(case, sets)
        reply = self._peer.ask({**request, **due}, limit_s, fds)
        room = self._arenas[INPUTS]
        if isinstance(room, FreshInputs):
            room.gone_out(start for _, start, _ in due["inputs"])
        return reply

    def _looks(self, case: int) -> list[list[int]]:
        """Random elements of each output of a case, for the runner to read the moment the call returns: what is written
        later, even before the judge has heard of the end, differs then."""
        counts = (spec_elements(t) for t in self._contract["cases"][case]["outputs"])
        draw = random.SystemRandom().randrange
        return [[draw(n) for _ in range(LOOKS)] if n else [] for n in counts]

    def _compare_looks(self, case: int, s: int, looks: list[list[int]], seen: Any) -> None:
        specs = self._contract["cases"][case]["outputs"]
        told = cast("list[Any]", seen) if isinstance(seen, list) else []
        if len(told) != len(specs):
            raise RunnerLost("the runner answered `run` without what the outputs held")
        for n, (spec, view, places) in enumerate(zip(specs, self.outputs(case, s), looks, strict=True)):
            now = b"".join(element_bytes(view.view(-1)[i]) for i in places).hex()
            if told[n] != now:
                self._late.append(f"output {spec['name']} was still being written after the call had returned")

    def rehearse(self, case: int, flush: bool, sets: int = 1) -> float:
        """Seconds that a request takes which hands over so many sets of inputs of this size and calls nothing. For a runner
        that has not loaded its candidate yet, so that nothing of it can tamper with the answer."""
        request = {"op": "run", "case": case, "sets": [0], "mode": "empty", "flush": flush}
        if self._device != "cpu":
            return self._peer.numbers(request, "ns", 1, self._load_s)[1]
        size = sum(spec_bytes(t) for t in self._contract["cases"][case]["inputs"])
        fds = tuple(scratch(size) for _ in range(sets))
        try:
            inputs = [[INPUTS, 0, size]] * sets
            return self._peer.numbers({**request, "inputs": inputs}, "ns", 1, self._load_s, fds)[1]
        finally:
            for fd in fds:
                os.close(fd)

    def profile(self, case: int, s: int) -> dict[str, Any] | None:
        """Let the candidate make one call that is marked for a profiler; what it cost the processor, as a claim.

        Raises:
            CandidateFailure, RunnerLost, RunnerTimeout: see Peer.ask.
        """
        request = {"op": "run", "case": case, "sets": [s], "mode": "profile", "flush": False}
        counts = self._ask_with_inputs(request, case, [s], self._call_s).get("counts")
        return cast("dict[str, Any]", counts) if isinstance(counts, dict) else None

    def sample(self, case: int, s: int) -> dict[str, Any] | None:
        """Let the candidate make many calls on inputs that it has, and see where its threads are; as a claim.

        Raises:
            CandidateFailure, RunnerLost, RunnerTimeout: see Peer.ask.
        """
        samples = self._peer.ask({"op": "sample", "case": case, "set": s}, self._call_s + STOPPED_S).get("samples")
        return cast("dict[str, Any]", samples) if isinstance(samples, dict) else None

    def cold_batch(self, case: int, sets: Sequence[int], calls: bool, fills: int) -> float:
        """Let the runner queue a flush, written `fills` times, for each of `sets`, with a call behind it or without: seconds
        outside. CUDA only.

        Raises:
            CandidateFailure, RunnerLost, RunnerTimeout: see Peer.ask.
        """
        request = {"op": "cold", "case": case, "sets": list(sets), "calls": calls, "fills": fills}
        return self._peer.numbers(request, "ns", 1, self._call_s * max(1, len(sets)))[1]

    def replay(self, case: int, sets: Sequence[int], times: int) -> tuple[float, float]:
        """Let the runner replay a CUDA graph of calls on `sets`: claimed seconds of all replays, and seconds outside.

        Raises:
            CandidateFailure: the calls cannot be captured; RunnerLost, RunnerTimeout: see Peer.ask.
        """
        request = {"op": "replay", "case": case, "sets": list(sets), "times": times}
        ns, seconds = self._peer.numbers(request, "ns", 1, self._call_s)
        return ns[0] / 1e9, seconds

    def left_running(self) -> str:
        """What the candidate does while nothing is asked of it, in words; empty when it rests."""
        return self._peer.left_running()

    def damage(self, case: int, s: int) -> list[str]:
        """What the calls have changed that they must not: guard zones, inputs, parameters."""
        found = list(dict.fromkeys(self._late))
        self._late.clear()
        found += [line for arena in self._arenas for line in arena.damaged_guards()]
        if self._device == "cpu":
            return found  # inputs and parameters are sealed: the kernel refuses what would be looked for here
        given = self._given.get((case, s), [])
        specs = self._contract["cases"][case]["inputs"]
        for spec, view, value in zip(specs, self.inputs(case, s), given, strict=True):
            if not same_bits(view, value):
                found.append(f"input {spec['name']} was changed by the call")
        for spec, view, value in zip(
            self._contract["parameters"], self._arenas[PARAMS].views, self._given_params, strict=True
        ):
            if not same_bits(view, value):
                found.append(f"parameter {spec['path']} was changed by the call")
                view.copy_(value)
        return found

    def close(self) -> None:
        """End the runner, then free the memory. One that hangs is ended by the launcher."""
        self._peer.close()
        self._given.clear()
        for arena in self._arenas:
            arena.free()
        self._arenas = []
        self._release()

    def _release(self) -> None:
        """Give what torch keeps for later back to the device: arenas, and the runner, take theirs from there."""
        if self._device != "cpu":
            import torch

            torch.cuda.empty_cache()

    def _synchronize(self) -> None:
        if self._device != "cpu":
            import torch

            torch.cuda.synchronize()


def sets_of_buffers(contract: dict[str, Any], device: str) -> int:
    """In how many copies there are inputs and outputs: two, as far as there is memory, and on `cpu`, where short calls are
    bounded by calls that each have inputs of their own, more of small ones."""
    if buffer_bytes(contract, 2) >= free_memory(device) / 4:
        return 1
    return max(2, min(MOST_SETS, SETS_BYTES // max(1, buffer_bytes(contract, 1)))) if device == "cpu" else 2


def buffer_bytes(contract: dict[str, Any], sets: int) -> int:
    """Bytes of all shared inputs and outputs."""
    tensors = [t for c in contract["cases"] for kind in ("inputs", "outputs") for t in c[kind]]
    return sets * sum(spec_bytes(t) for t in tensors)


def stretches(count: int) -> list[slice]:
    """Random stretches of `count` elements, together at most a sixteenth: the rest of a cold input stays cold."""
    length = min(STRETCH, max(1, count // 64))
    starts = [random.SystemRandom().randrange(count - length + 1) for _ in range(max(4, count >> 20))] if count else []
    return [slice(start, start + length) for start in starts]


def _other(values: Any) -> Any:
    """Values that are legal where these are (an index stays one), in another order, and scaled where they may be."""
    turned = values.flip(0)
    return turned * turned.new_empty(turned.shape).uniform_(0.5, 1.5) if turned.is_floating_point() else turned


def element_bytes(element: Any) -> bytes:
    """The bytes of a tensor of one element."""
    import torch

    return bytes(element.reshape(1).view(torch.uint8).tolist())


def poison_pattern(dtype: str) -> int:
    """Bits to fill an output with, as a signed integer of the element's size."""
    if dtype in _NAN:
        base, free = _NAN[dtype]
        return base | random.SystemRandom().getrandbits(free)
    if dtype in ("bool", "uint8"):
        return random.SystemRandom().randrange(2, 256)  # no legal bool
    return random.SystemRandom().getrandbits(8 * spec_bytes({"dtype": dtype, "shape": []}) - 1)


def _message(handle: Handle) -> dict[str, Any]:
    return {"bytes": handle.bytes, "writable": handle.writable, "reserved": handle.fd < 0}
