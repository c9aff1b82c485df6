"""torch_demo.py runs: with a right candidate it shows a small difference, with the skeleton it says what is missing."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hiera_mcp.contracts.bindings import render_files
from hiera_mcp.model.contract import Contract

ROOT = Path(__file__).parents[3]
TASKS = sorted(
    [*ROOT.glob("examples/tasks/*.py"), *(ROOT / "tests" / "tasks" / f"{n}.py" for n in ("tiny", "softmax"))]
)
GXX = shutil.which("g++") or ""
pytestmark = pytest.mark.skipif(not GXX, reason="g++ is not installed")

HEAD = """
#include "contract.h"
extern "C" int hiera_run(const hiera_inputs* i, const hiera_params* p, const hiera_outputs* o, void*) {
    (void)i; (void)p; (void)o;
"""
RIGHT = {
    "tiny": """
    for (int n = 0; n < HIERA_NUMEL_x; ++n) o->out[n] = 2 * i->x[n];
    return 0;
}""",
    "masked_prefix_sum": """
    for (int r = 0; r < HIERA_DIM_x_0; ++r) {
        double sum = 0;
        for (int c = 0; c < HIERA_DIM_x_1; ++c) {
            const int n = r * HIERA_DIM_x_1 + c;
            sum += i->keep[n] ? i->x[n] : 0;
            o->out[n] = static_cast<float>(0.125 * sum);
        }
    }
    return 0;
}""",
    "linear_swish_residual": """
    constexpr int K = HIERA_DIM_x_1;
    for (int r = 0; r < HIERA_DIM_x_0; ++r)
        for (int c = 0; c < K; ++c) {
            float y = 0;
            #pragma omp simd reduction(+ : y)
            for (int k = 0; k < K; ++k) y += i->x[r * K + k] * p->linear_weight[c * K + k];
            y += p->linear_bias[c];
            o->out[r * K + c] = i->x[r * K + c] + p->scale[c] * y / (1 + expf(-y));
        }
    return 0;
}""",
}


def demo(contract: Contract, folder: Path, source: str | None = None) -> subprocess.CompletedProcess[str]:
    """Build the skeleton, or `source` in its place, and run torch_demo.py on it."""
    for name, text in (render_files(contract) | ({"cpu_source.cpp": source} if source else {})).items():
        (folder / name).write_text(text)
    command = [GXX, "-O2", "-march=native", "-fopenmp-simd", "-shared", "-fPIC", "cpu_source.cpp", "cpp_source.cpp"]
    subprocess.run([*command, "-o", "case0.so"], check=True, cwd=folder, capture_output=True)
    env = os.environ | {"PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    run = [sys.executable, "torch_demo.py", "case0.so"]
    return subprocess.run(run, check=False, cwd=folder, capture_output=True, text=True, env=env)


@pytest.mark.parametrize("task", TASKS, ids=lambda p: p.stem)
def test_the_skeleton_says_that_it_is_not_implemented(
    task: Path, contract_of: Callable[..., Contract], tmp_path: Path
) -> None:
    done = demo(contract_of(task.read_text(), probe_bytes=0), tmp_path)
    assert done.returncode != 0
    assert "not implemented" in done.stderr.lower() and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_candidate_shows_a_small_difference(
    name: str, contract_of: Callable[..., Contract], tmp_path: Path
) -> None:
    task = next(t for t in TASKS if t.stem == name)
    done = demo(contract_of(task.read_text(), probe_bytes=0), tmp_path, HEAD + RIGHT[name])
    assert done.returncode == 0, done.stderr
    found = re.search(r"greatest difference (\S+), greatest value (\S+)", done.stdout)
    assert found, done.stdout
    assert float(found[1]) <= 1e-4 * float(found[2]) and float(found[2]) > 0
