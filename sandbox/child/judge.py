"""The trusted side: draws inputs, runs the reference, compares, times, and says what it thinks of one candidate.

    python -P -m hiera_mcp.sandbox.child.judge --fd N --device cpu|cuda:K

It never loads candidate code. The protocol is in docs/architecture.md; a report is a `JudgeReport` as plain data.
"""

import argparse
import os
import socket
from collections.abc import Callable
from typing import Any

from hiera_mcp.sandbox.child import clocks
from hiera_mcp.sandbox.child.failure import CandidateFailure
from hiera_mcp.sandbox.child.machine import device_facts, select
from hiera_mcp.sandbox.child.measure import BUDGET_S, CASE, Course, Samples, kernelbench
from hiera_mcp.sandbox.child.peer import Peer, RunnerLost, RunnerTimeout
from hiera_mcp.sandbox.child.record import Record
from hiera_mcp.sandbox.child.reference import Reference, ReferenceFailed, Unverifiable, contract_id
from hiera_mcp.sandbox.child.stopwatch import CudaStopwatch, HostStopwatch, stopwatch_for
from hiera_mcp.sandbox.child.timing import mean_interval, median_interval
from hiera_mcp.sandbox.child.values import NotPlain, encode
from hiera_mcp.sandbox.child.verify import Verifier, WrongOutput
from hiera_mcp.sandbox.child.wire import Closed, receive, send
from hiera_mcp.sandbox.child.workbench import Workbench

Report = dict[str, Any]
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

    def judge(self, order: dict[str, Any], sock: socket.socket, say: Say) -> Report:
        """The report on the candidate that the runner at the other end of `sock` holds.

        Raises:
            ReferenceFailed: nothing can be said, since the reference does not work.
        """
        contract = order["contract"]
        self._set_tf32(bool(contract["tolerance"]["allow_tf32"]))
        reference = self._reference_of(contract)
        bench = Workbench(Peer(sock), contract, self.device, order["options"])
        floor = clocks.memory_floor(contract["floor"], self._copy_bandwidth)
        evaluation = _Evaluation(reference, bench, self._watch, floor, order, say)
        try:
            report = evaluation.run()
        finally:
            bench.close()
        return {**report, "device_name": self.facts["device_name"], "torch_version": self.facts["torch"]}

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
                f"{e}, in stage `{self._stage}`{self._hint(self._reference.device == 'cpu')}",
            )
        seen = self._record.as_dict() if self._record.trials or self._record.worst else None
        return {
            "outcome": outcome,
            "stage": self._stage,
            "reason": reason,
            "verification": seen,
            "timing": self._timing,
        }

    def _work(self) -> tuple[str, str]:
        self._progress("load the candidate", 0.0)
        self._ran_at = ""
        self._counts: dict[str, Any] | None = None
        self._reference.draw_parameters()
        self._bench.load(self._order["candidate"]["kind"], self._interface())
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
        """One verified call, then one for a profiler around the runner; nothing is timed, and no verdict is reached."""
        verifier.verify_once()
        self._stage = "time"
        self._progress("profile one call", 0.5)
        self._counts = self._bench.profile(CASE, 0)
        return "passed", "one call was verified, and one made for the profiler"

    def _sanitize(self) -> tuple[str, str]:
        """One call of each case on its own draw, for a checker around the runner; outputs are not looked at."""
            "host_counts": self._counts,
        self._bench.set_parameters(self._reference.parameters())
        cases = range(len(self._reference.contract["cases"]))
        for case in cases:
            self._progress(f"check a call of case {case + 1} of {len(cases)}", 0.2 + 0.8 * case / len(cases))
            self._bench.put(case, 0, self._reference.draw_inputs(case))
            self._bench.run(case, [0], "each")
        return "passed", f"one call of each of {len(cases)} cases was made under a checker"

    def _interface(self) -> dict[str, Any]:
        """What the runner may know: shapes and names, never the reference's source."""
        contract = self._reference.contract
        return {
            "id": contract_id(contract),
            "precision": contract["precision"],
            "mode": self._reference.mode,
            "allow_tf32": contract["tolerance"]["allow_tf32"],
            "parameters": [{k: p[k] for k in ("path", "shape", "dtype")} for p in contract["parameters"]],
            "aliases": self._reference.aliases(),
            "keeps_state": self._reference.keeps_state,
            "cases": contract["cases"],
            "init": self._encoded_init(),
        }

    def _encoded_init(self) -> list[Any]:
        if self._order["candidate"]["kind"] != "python":
            return []
        try:
            return [encode(v) for v in self._reference.init]
        except NotPlain as e:
            raise ReferenceFailed(f"{e}; a ModelNew cannot be constructed for this task") from e

    def _time(self, mutates: bool, prepare_s: float | None) -> tuple[str, str]:
        options = self._order["options"]
        protocol = options.get("protocol", "hiera")
        budget_s = float(options.get("rounds_s", BUDGET_S))
        course = Course(self._reference, self._bench, self._watch, self._record, mutates, budget_s)
        if protocol == "kernelbench":
            samples, summary = kernelbench(course, self._reference, self._bench), mean_interval
        else:
            samples, summary = course.run(self._progress), median_interval
            samples.delivery = course.delivery() if self._order["candidate"]["kind"] == "python" else 0.0
        self._progress("check the clocks", 0.9)
        slope = clocks.measure_slope(self._bench, summary(samples.candidate)["median"])
        course.damage()
        self._timing = self._report_timing(samples, summary, slope, prepare_s, protocol)
        doubts = clocks.disagreements(slope, samples, self._floor, self._reference.device)
        return ("suspect", "; ".join(doubts)) if doubts else ("passed", self._praise())

    def _report_timing(
        self, samples: Samples, summary: Any, slope: clocks.Slope, prepare_s: float | None, protocol: str
    ) -> dict[str, Any]:
        return {
            "candidate": summary(samples.candidate),
            "reference": summary(samples.reference),
            "speedup": summary(samples.ratios),
            "pairs": len(samples.ratios),
            "cache": self._watch.cache if protocol == "hiera" else "warm",
            "warm_candidate": clocks.warm_time(self._bench),
            "prepare_seconds": prepare_s,
            "clocks": {"claimed": slope.claimed, "outside": slope.outside, "floor": self._floor.seconds},
            "protocol": protocol,
        }

    def _praise(self) -> str:
        assert self._timing is not None and self._record.worst is not None
        times = {k: self._timing[k]["median"] for k in ("candidate", "reference", "speedup")}
        return (
            f"right in {self._record.trials} full and {self._record.sampled_calls} sampled comparisons (worst error "
            f"{self._record.worst['error']:.2g} of its limit); {times['candidate'] * 1e3:.4g} ms against "
            f"{times['reference'] * 1e3:.4g} ms eager, speed-up {times['speedup']:.3g}"
        )

    def _hint(self, could_be_a_write: bool) -> str:
        if could_be_a_write and self._stage in ("verify", "time"):
            return " (inputs and parameters are mapped read-only: a write to them ends the process)"
        return ""

    def _progress(self, message: str, fraction: float) -> None:
        self._say(message, min(fraction, 1.0), self._stage)


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
        _serve_one(sock, judge, order, socket.socket(fileno=fds[0]))


def _serve_one(sock: socket.socket, judge: Judge, order: dict[str, Any], runner: socket.socket) -> None:
    job = order["job"]

    def say(message: str, fraction: float, stage: str) -> None:
        send(sock, {"event": "progress", "job": job, "message": message, "fraction": fraction, "stage": stage})

    try:
        with runner:
            report = judge.judge(order, runner, say)
    except ReferenceFailed as e:
        task = {"todo": e.todo} if isinstance(e, Unverifiable) else {}
        send(sock, {"event": "failed", "job": job, "error": str(e), **task})
        return
    except Exception as e:
        send(sock, {"event": "failed", "job": job, "error": f"{type(e).__name__}: {e}"})
        raise
    send(sock, {"event": "report", "job": job, "report": report})


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
