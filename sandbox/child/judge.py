"""The trusted side: draws inputs, runs the reference, compares, times, and says what it thinks of one candidate.

    python -P -m hiera_mcp.sandbox.child.judge --fd N --device cpu|cuda:K

It never loads candidate code. The protocol is in docs/architecture.md; a report is a `JudgeReport` as plain data.
"""

import argparse
import contextlib
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hiera_mcp.sandbox.child import clocks, cold_clock
from hiera_mcp.sandbox.child.comparing import Comparing
from hiera_mcp.sandbox.child.conditions import Conditions
from hiera_mcp.sandbox.child.failure import CandidateFailure
from hiera_mcp.sandbox.child.gate import Gate
from hiera_mcp.sandbox.child.machine import device_facts, select
from hiera_mcp.sandbox.child.measure import BUDGET_S, CASE, Course, Samples, kernelbench
from hiera_mcp.sandbox.child.outside_clock import bear_out, bear_out_warm, implausible, kept
from hiera_mcp.sandbox.child.peer import Peer, RunnerLost, RunnerTimeout
from hiera_mcp.sandbox.child.record import Record
from hiera_mcp.sandbox.child.reference import Reference, ReferenceFailed, Unverifiable, contract_id
from hiera_mcp.sandbox.child.rehearsal import Rehearsal, rehearse
from hiera_mcp.sandbox.child.short_calls import ShortCall, short_call
from hiera_mcp.sandbox.child.stopwatch import CudaStopwatch, HostStopwatch, stopwatch_for
from hiera_mcp.sandbox.child.timing import mean_interval, median_interval
from hiera_mcp.sandbox.child.undisturbed import slowed, undisturbed
from hiera_mcp.sandbox.child.values import NotPlain, encode
from hiera_mcp.sandbox.child.verify import Verifier, WrongOutput
from hiera_mcp.sandbox.child.wire import Closed, receive, send
from hiera_mcp.sandbox.child.workbench import Workbench

Report = dict[str, Any]
TRIES = 3
HANDLING_S = 250e-6
"""What a runner spends in Python, with cold caches, on looking at the results of a ModelNew and on delivering them, beside the
copies (measured: 80 to 220 us on a 2-core host)."""
Say = Callable[[str, float, str], None]
"""Receives progress: a message, a fraction, and the stage."""


class Judge:
    """Judges candidates on one device, one after another."""

    def __init__(self, device: str) -> None:
        self.device = device
        select(device)
        self.facts = device_facts(device)
        self._watch = stopwatch_for(device)
        self._copy_bandwidth = self._watch.copy_bandwidth()
        self._reference: Reference | None = None

    def judge(self, order: dict[str, Any], peer: Peer, say: Say) -> Report:
        """The report on the candidate that the runner `peer` holds.

        Raises:
            ReferenceFailed: nothing can be said, since the reference does not work.
        """
        contract = order["contract"]
        self._set_tf32(bool(contract["tolerance"]["allow_tf32"]))
        reference = self._reference_of(contract)
        bench = Workbench(peer, contract, self.device, order["options"])
        floor = clocks.memory_floor(contract["floor"], self._copy_bandwidth)
        evaluation = _Evaluation(reference, bench, self._watch, floor, order, say)
        try:
            report = evaluation.run()
        finally:
            bench.close()
        return {**report, "device_name": self.facts["device_name"], "torch_version": self.facts["torch"]}

    def compare(self, order: dict[str, Any], peers: Sequence[Peer], say: Say) -> Report:
        """The report on two candidates timed against each other; see comparing.py.

        Raises:
            ReferenceFailed: the reference does not work.
        """
        contract = order["contract"]
        self._set_tf32(bool(contract["tolerance"]["allow_tf32"]))
        reference = self._reference_of(contract)
        benches = [Workbench(peer, contract, self.device, order["options"]) for peer in peers]
        floor = clocks.memory_floor(contract["floor"], self._copy_bandwidth)
        kinds = [c["kind"] for c in order["candidates"]]
        budget_s = float(order["options"]["compare_s"])
        comparing = Comparing(reference, benches, kinds, partial(interface_of, reference), self._watch, floor, budget_s)
        try:
            return comparing.run(lambda message, fraction: say(message, fraction, "time"))
        finally:
            for bench in benches:
                bench.close()

    def _reference_of(self, contract: dict[str, Any]) -> Reference:
        if self._reference is None or self._reference.contract != contract:
            self._reference = Reference(contract, self.device)
        return self._reference

    def _set_tf32(self, allowed: bool) -> None:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed


class _Evaluation:
    """One candidate: load, prepare, verify, time."""

    def __init__(
        self,
        reference: Reference,
        bench: Workbench,
        watch: HostStopwatch | CudaStopwatch,
        floor: clocks.MemoryFloor,
        order: dict[str, Any],
        say: Say,
    ) -> None:
        self._reference = reference
        self._bench = bench
        self._watch = watch
        self._floor = floor
        self._order = order
        self._say = say
        self._stage = "load"
        self._record = Record()
        self._timing: dict[str, Any] | None = None
        self._rehearsal: Rehearsal | None = None
        self._undisturbed: float | None = None
        self._ran_at = ""
        self._counts: dict[str, Any] | None = None
        self._located: dict[str, Any] | None = None

    def run(self) -> Report:
        try:
            outcome, reason = self._work()
        except WrongOutput as e:
            outcome, reason = "wrong_output", str(e)
        except CandidateFailure as e:
            outcome, reason = "candidate_error", f"{e}{self._hint('IllegalAddress' in str(e))}"
        except RunnerTimeout as e:
            outcome, reason = "timeout", f"{e}, in stage `{self._stage}`"
        except RunnerLost as e:
            outcome, reason = (
                "runner_lost",
                f"{e}, in stage `{self._stage}`{self._hint(self._reference.device == 'cpu' and e.ended)}",
            )
        seen = self._record.as_dict() if self._record.trials or self._record.worst else None
        return {
            "outcome": outcome,
            "stage": self._stage,
            "reason": reason,
            "verification": seen,
            "timing": self._timing,
            "host_counts": self._counts,
            "host_samples": self._located,
        }

    def _work(self) -> tuple[str, str]:
        self._progress("load the candidate", 0.0)
        self._reference.draw_parameters()
        kind = self._order["candidate"]["kind"]
        if self._order["op"] == "judge" and self._reference.device == "cpu":
            self._rehearsal = rehearse(self._bench, self._watch)
        if self._order["op"] == "judge" and self._reference.device != "cpu":
            self._undisturbed = undisturbed(self._reference, self._bench, self._watch, CASE)
        self._bench.load(kind, interface_of(self._reference, kind))
        self._stage = "verify"
        verifier = Verifier(self._reference, self._bench, self._record, self._progress)
        if self._order["op"] == "profile":
            return self._profile(verifier)
        if self._order["op"] == "sanitize":
            return self._sanitize()
        prepare_s = verifier.verify()
        self._stage = "time"
        return self._time(verifier.reference_mutates, prepare_s)

    def _profile(self, verifier: Verifier) -> tuple[str, str]:
        """One verified call, then one for a profiler around the runner, and on `cpu` many to be sampled; nothing is timed,
        and no verdict is reached."""
        verifier.verify_once()
        self._stage = "time"
        self._progress("profile one call", 0.5)
        self._counts = self._bench.profile(CASE, 0)
        if self._reference.device == "cpu":
            self._progress("sample calls", 0.8)
            self._located = self._bench.sample(CASE, 0)
        return "passed", "one call was verified, and one made for the profiler"

    def _sanitize(self) -> tuple[str, str]:
        """One call of each case on its own draw, for a checker around the runner; outputs are not looked at."""
        self._bench.set_parameters(self._reference.parameters())
        cases = range(len(self._reference.contract["cases"]))
        for case in cases:
            self._progress(f"check a call of case {case + 1} of {len(cases)}", 0.2 + 0.8 * case / len(cases))
            self._bench.put(case, 0, self._reference.draw_inputs(case))
            self._bench.run(case, [0], "each")
        return "passed", f"one call of each of {len(cases)} cases was made under a checker"

    def _time(self, mutates: bool, prepare_s: float | None) -> tuple[str, str]:
        options = self._order["options"]
        protocol = options.get("protocol", "hiera")
        budget_s = float(options.get("rounds_s", BUDGET_S))
        course = Course(self._reference, self._bench, self._watch, self._record, mutates, budget_s)
        busy = self._bench.left_running()
        if protocol == "kernelbench":
            samples, summary = kernelbench(course, self._reference, self._bench), mean_interval
        else:
            samples, summary = self._rounds(course), median_interval
            bear_out(samples)
        self._progress("check the clocks", 0.9)
        slope = clocks.measure_slope(self._bench, summary(samples.candidate)["median"])
        fresh_s = clocks.fresh_time(course, self._rehearsal, samples)
        bear_out_warm(samples, fresh_s)
        course.damage()
        cold = self._cold_doubt(course, samples, slope) if protocol == "hiera" else ""
        timing = self._report_timing(samples, summary, slope, prepare_s, protocol)
        cold_s, kind = timing["candidate"]["median"], self._order["candidate"]["kind"]
        short = short_call(self._reference, self._bench, course, kind, cold_s, slope)
        self._ran_at = course.conditions.in_words()
        self._timing = timing | _circumstances(course.conditions, short)
        doubts = [
            *filter(None, (busy, self._bench.left_running(), self._slowed(samples), cold)),
            *clocks.disagreements(slope, samples, self._floor, self._reference.device),
            *(kept(samples, fresh_s) if protocol == "kernelbench" else ()),
        ]
        return ("suspect", "; ".join(doubts)) if doubts else ("passed", self._praise())

    def _cold_doubt(self, course: Course, samples: Samples, slope: clocks.Slope) -> str:
        """What is not credible about the claims for cold calls on a GPU; on `cpu` see outside_clock.py."""
        if self._reference.device == "cpu":
            return ""
        python = self._order["candidate"]["kind"] == "python"
        return cold_clock.cold_doubt(self._reference, self._bench, course, samples, slope.outside, python)

    def _slowed(self, samples: Samples) -> str:
        """What says that the reference was slowed down, in words."""
        return "" if self._undisturbed is None else slowed(self._undisturbed, samples.reference)

    def _rounds(self, course: Course) -> Samples:
        """Rounds until the claims are credible. A neighbour on the machine delays answers for a while; a false claim is
        false every time."""
        samples = self._samples(course)
        for _ in range(TRIES - 1):
            if implausible(samples):
                samples = self._samples(course)
        return samples

    def _samples(self, course: Course) -> Samples:
        samples = course.run(self._progress)
        if self._order["candidate"]["kind"] == "python":
            samples.delivery = course.delivery(flush=True) + (HANDLING_S if self._rehearsal else 0.0)
            samples.warm_delivery = course.delivery(flush=False)
        samples.rehearsed = list(self._rehearsal.single) if self._rehearsal else []
        return samples

    def _report_timing(
        self, samples: Samples, summary: Any, slope: clocks.Slope, prepare_s: float | None, protocol: str
    ) -> dict[str, Any]:
        return {
            "candidate": summary(samples.net(samples.candidate)),
            "reference": summary(samples.net(samples.reference)),
            "speedup": summary(samples.ratios),
            "pairs": len(samples.ratios),
            "cache": self._watch.cache if protocol == "hiera" else "warm",
            "warm_candidate": clocks.warm_time(self._bench),
            "prepare_seconds": prepare_s,
            "clocks": {"claimed": slope.claimed, "outside": slope.outside, "floor": self._floor.seconds},
            "clock_overhead": samples.overhead,
            "protocol": protocol,
        }

    def _praise(self) -> str:
        assert self._timing is not None and self._record.worst is not None
        times = {k: self._timing[k]["median"] for k in ("candidate", "reference", "speedup")}
        return (
            f"right in {self._record.trials} full and {self._record.sampled_calls} sampled comparisons (worst error "
            f"{self._record.worst['error']:.2g} of its limit); {times['candidate'] * 1e3:.4g} ms against "
            f"{times['reference'] * 1e3:.4g} ms eager, speed-up {times['speedup']:.3g}{f', at {self._ran_at}' if self._ran_at else ''}"
            f"{_remarks(self._timing)}"
        )

    def _hint(self, could_be_a_write: bool) -> str:
        if could_be_a_write and self._stage in ("verify", "time"):
            return " (inputs and parameters are mapped read-only: a write to them ends the process)"
        return ""

    def _progress(self, message: str, fraction: float) -> None:
        self._say(message, min(fraction, 1.0), self._stage)


def interface_of(reference: Reference, kind: str) -> dict[str, Any]:
    """What the runner of a candidate of this kind may know: shapes and names, never the reference's source."""
    contract = reference.contract
    return {
        "id": contract_id(contract),
        "precision": contract["precision"],
        "mode": reference.mode,
        "allow_tf32": contract["tolerance"]["allow_tf32"],
        "parameters": [{k: p[k] for k in ("path", "shape", "dtype")} for p in contract["parameters"]],
        "aliases": reference.aliases(),
        "keeps_state": reference.keeps_state,
        "cases": contract["cases"],
        "init": _encoded_init(reference) if kind == "python" else [],
    }


def _encoded_init(reference: Reference) -> list[Any]:
    try:
        return [encode(v) for v in reference.init]
    except NotPlain as e:
        raise ReferenceFailed(f"{e}; a ModelNew cannot be constructed for this task") from e


def _remarks(timing: dict[str, Any]) -> str:
    """What a reader of the time must know besides: the launch cost of a short call, and what could not be measured."""
    short, text = timing["short_call"], ""
    if short is not None and short["device"] is not None:
        text = f"; by graph replay {short['device'] * 1e6:.3g} us on the device, launching adds {short['launch'] * 1e6:.3g} us"
    return "".join([text, *(f"; not measured: {line}" for line in timing["unmeasured"])])


def _circumstances(conditions: Conditions, short: ShortCall) -> dict[str, Any]:
    """What the times were taken at, and what could not be measured."""
    missing = [conditions.missing] if conditions.missing else []
    return {
        "short_call": short.found,
        "device_clocks": conditions.summary(),
        "clock_limits": conditions.limits,
        "unmeasured": [*missing, *short.unmeasured],
    }


def serve(sock: socket.socket, judge: Judge) -> None:
    """Judge what the launcher sends until it is gone.

    A failure of the reference is reported and survived. One of the judge itself is reported, and then ends it: the
    launcher starts a new one.
    """
    send(sock, {"event": "ready", **judge.facts})
    while True:
        try:
            order, fds = receive(sock)
        except Closed:
            return
        _serve_one(sock, judge, order, [socket.socket(fileno=fd) for fd in fds])


def _serve_one(sock: socket.socket, judge: Judge, order: dict[str, Any], ends: list[socket.socket]) -> None:
    job = order["job"]

    def say(message: str, fraction: float, stage: str) -> None:
        send(sock, {"event": "progress", "job": job, "message": message, "fraction": fraction, "stage": stage})

    try:
        with contextlib.ExitStack() as stack:
            for end in ends:
                stack.enter_context(end)
            peers = _peers(ends, bool(order.get("gated")))
            comparing = order["op"] == "compare"
            report = judge.compare(order, peers, say) if comparing else judge.judge(order, peers[0], say)
    except ReferenceFailed as e:
        task = {"todo": e.todo} if isinstance(e, Unverifiable) else {}
        send(sock, {"event": "failed", "job": job, "error": str(e), **task})
        return
    except Exception as e:
        send(sock, {"event": "failed", "job": job, "error": f"{type(e).__name__}: {e}"})
        raise
    send(sock, {"event": "report", "job": job, "report": report})


def _peers(ends: list[socket.socket], gated: bool) -> list[Peer]:
    """The runners: their sockets, which come first, and where they can be held still a gate for each."""
    if not gated:
        return [Peer(sock) for sock in ends]
    half = len(ends) // 2
    return [Peer(sock, Gate(gate)) for sock, gate in zip(ends[:half], ends[half:], strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--device", required=True)
    args = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads would disturb the candidate
    os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    serve(socket.socket(fileno=args.fd), Judge(args.device))


if __name__ == "__main__":
    main()
