"""Compile the CUDA candidates of tests/honest and tests/exploits as an evaluation would, without a GPU.

    python scripts/check_cuda_candidates.py [--target cuda:sm_90a] [WORD]

Needs nvcc and a minute or a few. With a word, only candidates that have it in their path.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from anyio.from_thread import start_blocking_portal

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from candidate_files import CandidateFile, candidate_files
from workshops import Workshop

from hiera_mcp.model.work import CheckReport


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("word", nargs="?", default="")
    args = parser.parse_args()
    folders = [ROOT / "tests/honest/cuda", *sorted((ROOT / "tests/exploits").glob("cuda_*"))]
    found = [c for c in candidate_files(folders, ".cu") if args.word in str(c.path) and c.runs_on(args.target)]
    with tempfile.TemporaryDirectory() as cache, start_blocking_portal("asyncio") as portal:
        workshop = Workshop(portal, Path(cache), args.target)
        try:
            orders = [(workshop.task(*c.contract), c.code, c.space) for c in found]
            reports = workshop.check(orders)
        finally:
            workshop.close()
    failed = [c for c, report in zip(found, reports, strict=True) if not _told(c, report)]
    print(f"{len(found) - len(failed)} of {len(found)} are as their heads say")
    return 1 if failed else 0


def _told(candidate: CandidateFile, report: CheckReport) -> bool:
    """Print what the compiler and the space check say; whether it is what the candidate's head says."""
    findings = ", ".join(f.what for f in report.space_findings)
    good = report.build.ok and not findings
    expected = candidate.facts.get("status", "passed") not in ("invalid_space", "compile_error")
    log = "" if good == expected else f"\n{report.build.log[-1500:]}"
    print(f"{'ok ' if good else 'no '} {report.build.seconds:5.1f} s  {candidate.name}  {findings}{log}")
    return good == expected


if __name__ == "__main__":
    sys.exit(main())
