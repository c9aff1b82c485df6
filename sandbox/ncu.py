"""Nsight Compute from the outside: the command line that reads a fixed list of counters, and its CSV, read.

Pure: nothing is started here. ncu must run *inside* the box, with the runner as its child; with bwrap as its child it
hangs. Metric names are valid on sm_80, sm_90 and sm_100 (CUPTI 13.0 metric database). CSV: Nsight Compute CLI
documentation, `--page raw`: a header row, a row of units, one row per launch.
"""

import csv
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hiera_mcp.model.profile import Metric
from hiera_mcp.sandbox.isolation.box import Bind

METRICS: dict[str, str] = {
    "time": "gpu__time_duration.sum",
    "sm_pct": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory_pct": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_pct": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_read": "dram__bytes_read.sum",
    "dram_write": "dram__bytes_write.sum",
    "l2_hit": "lts__t_sector_hit_rate.pct",
    "l1_hit": "l1tex__t_sector_hit_rate.pct",
    "bytes_per_sector_load": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
    "bytes_per_sector_store": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
    "bank_conflicts_load": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "bank_conflicts_store": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "shared_wavefronts_load": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_wavefronts_store": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "local_loads": "smsp__sass_inst_executed_op_local_ld.sum",
    "async_copies": "smsp__sass_inst_executed_op_ldgsts.sum",
    "occupancy_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue_active": "smsp__issue_active.avg.per_cycle_active",
    "warps_eligible": "smsp__warps_eligible.avg.per_cycle_active",
    "stall_long_scoreboard": "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "stall_barrier": "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "threads_per_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "branches": "smsp__inst_executed_op_branch.sum",
    "instructions": "smsp__inst_executed.sum",
    "fma_pipe_pct": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "alu_pipe_pct": "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",
    "tensor_pipe_pct": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
    "grid": "launch__grid_size",
    "block": "launch__block_size",
    "waves": "launch__waves_per_multiprocessor",
}
"""Our name → ncu's."""

MOST_LAUNCHES = 16

PERMISSION = (
    "Hardware counters are reserved for administrators on this host (ERR_NVGPUCTRPERM). Set "
    "NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module, or run where profiling is allowed; until then the "
    "evidence is static and derived from the time."
)
ABSENT = "Hardware counters were not read: ncu was not found. Install Nsight Compute and put ncu on the PATH."
_FAILURES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"ERR_NVGPUCTRPERM|CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"), PERMISSION),
    (
        re.compile(r"LibraryNotLoaded|Failed to initialize the profiler"),
        "Hardware counters cannot be read in this container: ncu cannot initialise its profiler.",
    ),
    (
        re.compile(r"No kernels were profiled"),
        "Hardware counters were not read: no launch matched, because the candidate launched no kernel.",
    ),
    (
        re.compile(r"Unknown Error on device"),
        "Hardware counters were not read: ncu and the driver do not fit each other.",
    ),
)
_INSTALLED = (Path("/opt/nvidia/nsight-compute"),)
_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "usecond": 1e-6,
    "nsecond": 1e-9,
    "ms": 1e-3,
    "msecond": 1e-3,
    "s": 1.0,
    "second": 1.0,
}


@dataclass(frozen=True)
class Launch:
    """One profiled launch."""

    kernel: str
    values: dict[str, float | None]
    """Our name → value; None when ncu says n/a."""
    units: dict[str, str]

    @property
    def seconds(self) -> float | None:
        value = self.values.get("time")
        return None if value is None else value * _SECONDS.get(self.units.get("time", ""), 1e-9)


def find() -> Path | None:
    """ncu on the PATH, or in the places where installers put it."""
    found = shutil.which("ncu")
    candidates = [Path(found)] if found else []
    candidates += [
        Path("/usr/local/cuda/bin/ncu"),
        *sorted((found for folder in _INSTALLED for found in folder.glob("*/ncu")), reverse=True),
    ]
    return next((c.resolve() for c in candidates if c.is_file()), None)


def binds(ncu: Path) -> tuple[Bind, ...]:
    """What a box must show so that ncu runs: its installation. What is called ncu may be a script that calls the one in
    NVIDIA's own folder, so that is shown too."""
    folders = [ncu.parent, *(folder for folder in _INSTALLED if folder.is_dir())]
    return tuple(Bind(folder, str(folder)) for folder in folders if not folder.is_relative_to("/usr"))


def command(
    ncu: Path,
    target: Sequence[str],
    log: str,
    *,
    skip: int = 0,
    count: int = MOST_LAUNCHES,
    kernel: str = "",
    nvtx: str = "",
    marked: bool = False,
) -> tuple[str, ...]:
    """The command line that profiles launches of `target`.

    Args:
        target: the runner's command line.
        log: file for ncu's own output, the CSV, so that the target's output does not mix with it.
        skip: matching launches to let pass first (warm-up).
        count: matching launches to profile; each is replayed once per group of counters.
        kernel: regular expression on demangled kernel names; empty for all.
        nvtx: push/pop range to which profiling is limited; empty for none.
        marked: only launches between the target's cuProfilerStart and cuProfilerStop.
    """
    return (
        str(ncu),
        *("--csv", "--page", "raw", "--print-units", "base", "--log-file", log),
        *("--metrics", ",".join(METRICS.values())),
        *("--clock-control", "none", "--cache-control", "all", "--target-processes", "all"),
        *("--launch-skip", str(skip), "--launch-count", str(count)),
        *(("--kernel-name-base", "demangled", "--kernel-name", f"regex:{kernel}") if kernel else ()),
        *(("--nvtx", "--nvtx-include", f"{nvtx}/") if nvtx else ()),
        *(("--profile-from-start", "off") if marked else ()),
        *target,
    )


def parse_csv(text: str) -> tuple[Launch, ...]:
    """The launches in ncu's output. Lines of ncu and of the program before the header are skipped."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        return ()
    rows = list(csv.reader(line for line in lines[start:] if line.startswith('"')))
    header, units = rows[0], rows[1] if len(rows) > 1 else []
    return tuple(_launch(header, units, row) for row in rows[2:] if len(row) == len(header) and row[0])


def failure(text: str) -> str | None:
    """What to tell the user when ncu's output shows that no counters were read; None when it does not."""
    for pattern, advice in _FAILURES:
        if pattern.search(text):
            return advice
    if parse_csv(text):
        return None
    error = next((line for line in text.splitlines() if line.startswith("==ERROR==")), "")
    said = error.removeprefix("==ERROR==").strip() or "it printed no table"
    return f"Hardware counters were not read: ncu failed ({said[:200]})."


def describe(launches: Sequence[Launch]) -> str:
    """What a reader of the metrics must know: of which launch they are, and how many there were."""
    longest = max(launches, key=_seconds)
    total = sum(map(_seconds, launches))
    share = f"{100 * _seconds(longest) / total:.0f} % of their time" if total else "of unknown time"
    return (
        f"Hardware counters of {_counted(len(launches))} of one call, with cold caches, by Nsight Compute; the metrics "
        f"ncu_* are those of the longest one ({share}): {longest.kernel[:200]}."
    )


def metrics(launches: Iterable[Launch]) -> tuple[Metric, ...]:
    """The counters of the launch that took longest, by our names; what is absent is null with a reason."""
    longest = max(launches, key=_seconds, default=None)
    if longest is None:
        return ()
    return tuple(
        Metric(
            name=f"ncu_{name}",
            value=longest.values.get(name),
            unit=longest.units.get(name, ""),
            origin="counter",
            reason="" if longest.values.get(name) is not None else f"ncu gave no value for {METRICS[name]} on this GPU",
        )
        for name in METRICS
    )


def _counted(launches: int) -> str:
    if launches == MOST_LAUNCHES:
        return f"the first {launches} kernel launches"
    return f"{launches} kernel launch{'' if launches == 1 else 'es'}"


def _seconds(launch: Launch) -> float:
    return launch.seconds or 0.0


def _launch(header: list[str], units: list[str], row: list[str]) -> Launch:
    cells = dict(zip(header, row, strict=True))
    unit_of = dict(zip(header, units, strict=False))
    return Launch(
        kernel=cells.get("Kernel Name", ""),
        values={name: _number(cells.get(metric, "")) for name, metric in METRICS.items()},
        units={name: unit_of.get(metric, "") for name, metric in METRICS.items()},
    )


def _number(text: str) -> float | None:
    """A value with thousands commas; None for `n/a` and the like."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None
