"""Judge and runner as real processes: every kind of candidate must end as it deserves, with a reason that says why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiera_mcp.model.contract import Contract

pytestmark = pytest.mark.alone

AFFINE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return torch.relu(x * self.weight + self.bias)

def get_inputs():
    return [torch.rand(512, 256)]

def get_init_inputs():
    return [256]
"""

HEAD = """
#include "contract.h"
#include <cmath>
static const int64_t N = 512 * 256, F = 256;
"""


def body(code: str, before: str = "") -> str:
    return f"""{HEAD}{before}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void* ws) {{
    const float* x = in->x0;
    float* y = out->y0;
    (void)x; (void)y; (void)p; (void)ws;
    {code}
    return 0;
}}
"""


RIGHT = "for (int64_t i = 0; i < N; i++) y[i] = std::fmax(x[i] * p->weight[i % F] + p->bias[i % F], 0.f);"


@pytest.fixture(scope="module")
def affine(contract_for: Callable[..., Contract]) -> Contract:
    return contract_for(AFFINE)


def test_a_right_candidate_passes_with_times_margin_and_agreeing_clocks(driver: Any, affine: Contract) -> None:
    report = driver.judge(affine, body(RIGHT))
    assert report.outcome == "passed", report.reason
    assert report.verification is not None and report.timing is not None
    assert report.verification.oracle == "float64" and report.verification.deterministic is True
    assert report.verification.trials >= 8 and report.verification.sampled_calls >= 14
    worst = report.verification.worst
    assert worst is not None and worst.error < 1
    assert {"zeros", "constant", "input_echo", "other_inputs", "constant_along"} == set(worst.trivial)
    assert min(worst.trivial.values()) >= 2
    assert report.timing.pairs >= 7 and report.timing.cache in ("cold", "partly_cold")
    assert report.device_name and report.torch_version
    stages = [e["stage"] for e in driver.events if e["event"] == "progress"]
    assert stages == sorted(stages, key=["load", "verify", "time"].index) and {"verify", "time"} <= set(stages)


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("for (int64_t i = 0; i < N; i++) y[i] = x[i] + 1;", "131072 of 131072 elements are wrong"),
        (RIGHT.replace("i < N", "i < N - 3"), "3 elements were never written"),
        (RIGHT + " y[7] = NAN;", "1 of 131072 elements are wrong, the worst is not finite"),
        (RIGHT + " y[N] = 1; y[N + 1] = 1;", "guard zone 0 bytes past the end of y0"),
        (RIGHT + " y[-1] = 1;", "guard zone"),
        ("for (int64_t i = 0; i < N; i++) y[i] = std::fmax(x[i], 0.f);", "parameters moved"),
        ("for (int64_t i = 0; i < N; i++) y[i] = x[i] * p->weight[i % F] + p->bias[i % F];", "signed"),
    ],
    ids=["wrong", "partly written", "one NaN", "past the end", "before the start", "parameters skipped", "no relu"],
)
def test_a_wrong_candidate_is_caught_and_the_reason_names_what_was_seen(
    driver: Any, affine: Contract, code: str, seen: str
) -> None:
    report = driver.judge(affine, body(code))
    assert report.outcome == "wrong_output"
    assert report.stage == "verify"
    assert seen in report.reason, report.reason
    assert report.timing is None


def test_writing_to_an_input_ends_the_runner_because_inputs_are_read_only(driver: Any, affine: Contract) -> None:
    report = driver.judge(affine, body("const_cast<float*>(x)[0] = 0;" + RIGHT))
    assert report.outcome == "runner_lost"
    assert "read-only" in report.reason


def test_parameters_kept_from_the_first_prepare_are_caught_when_they_change(driver: Any, affine: Contract) -> None:
    once = "static float w[256], b[256]; static bool known = false;"
    code = "if (!known) { for (int i = 0; i < F; i++) { w[i] = p->weight[i]; b[i] = p->bias[i]; } known = true; }"
    report = driver.judge(affine, body(code + RIGHT.replace("p->weight", "w").replace("p->bias", "b"), once))
    assert report.outcome == "wrong_output"
    assert "parameters moved" in report.reason


def test_a_prepared_copy_of_the_parameters_is_refreshed_and_passes(driver: Any, affine: Contract) -> None:
    prepare = """
extern "C" size_t hiera_workspace_bytes(void) { return 2 * 256 * sizeof(float); }
extern "C" int hiera_prepare(const hiera_params* p, void* ws) {
    float* w = (float*)ws;
    for (int i = 0; i < 256; i++) { w[i] = p->weight[i]; w[256 + i] = p->bias[i]; }
    return 0;
}
"""
    code = "const float* w = (const float*)ws; const float* b = w + 256;"
    report = driver.judge(affine, body(code + RIGHT.replace("p->weight", "w").replace("p->bias", "b"), prepare))
    assert report.outcome == "passed", report.reason
    assert report.timing.prepare_seconds is not None


def test_a_result_remembered_by_address_is_caught(driver: Any, affine: Contract) -> None:
    memory = "#include <map>\n#include <vector>\nstatic std::map<const float*, std::vector<float>> seen;"
    code = f"""
    if (auto found = seen.find(x); found != seen.end()) {{
        for (int64_t i = 0; i < N; i++) y[i] = found->second[i];
        return 0;
    }}
    {RIGHT}
    seen[x].assign(y, y + N);"""
    report = driver.judge(affine, body(code, memory))
    assert report.outcome == "wrong_output"


def test_a_result_remembered_only_once_the_timing_starts_is_caught_by_samples(driver: Any, affine: Contract) -> None:
    memory = (
        "#include <map>\n#include <vector>\nstatic std::map<const float*, std::vector<float>> seen; static int calls;"
    )
    code = f"""
    if (++calls > 14) if (auto found = seen.find(x); found != seen.end()) {{
        for (int64_t i = 0; i < N; i++) y[i] = found->second[i];
        return 0;
    }}
    {RIGHT}
    if (calls > 14) seen[x].assign(y, y + N);"""
    report = driver.judge(affine, body(code, memory))
    assert report.outcome == "wrong_output"
    assert report.stage == "time" and "does not follow the new inputs" in report.reason


def test_work_left_to_a_thread_after_the_return_is_caught(driver: Any, affine: Contract) -> None:
    code = f"std::thread([=] {{ std::this_thread::sleep_for(std::chrono::milliseconds(20)); {RIGHT} }}).detach();"
    report = driver.judge(
        affine,
        body(code.replace("p->", "q."), "#include <thread>\n#include <chrono>\n").replace(
            "const float* x =", "const auto q = *p; const float* x ="
        ),
    )
    assert report.outcome == "wrong_output"
    assert "never written" in report.reason


def test_a_slow_candidate_is_honest_and_its_slowness_is_seen(driver: Any, affine: Contract) -> None:
    code = RIGHT + " std::this_thread::sleep_for(std::chrono::milliseconds(3));"
    report = driver.judge(affine, body(code, "#include <thread>\n#include <chrono>\n"))
    assert report.outcome == "passed", report.reason
    assert report.timing.candidate.median >= 3e-3
    assert report.timing.clocks.outside >= 3e-3


def test_a_candidate_that_reports_an_error_is_told_its_code(driver: Any, affine: Contract) -> None:
    report = driver.judge(affine, body("return 17;"))
    assert report.outcome == "candidate_error" and "hiera_run returned 17" in report.reason


def test_a_candidate_that_hangs_is_a_timeout(driver: Any, affine: Contract) -> None:
    report = driver.judge(affine, body("for (volatile int i = 0;; i = i + 1) {}"), call_s=0.5)
    assert report.outcome == "timeout" and report.stage == "verify"


def test_a_candidate_that_ends_the_process_is_lost(driver: Any, affine: Contract) -> None:
    report = driver.judge(affine, body("_exit(0);", "#include <unistd.h>"))
    assert report.outcome == "runner_lost"


def test_a_library_that_lacks_symbols_cannot_be_loaded(driver: Any, affine: Contract) -> None:
    report = driver.judge(affine, body("nowhere();", 'extern "C" void nowhere(void);'))
    assert report.outcome == "candidate_error" and report.stage == "load"
    assert "nowhere" in report.reason


def test_the_kernelbench_protocol_reports_means_of_a_hundred_warm_calls(driver: Any, affine: Contract) -> None:
    report = driver.judge(affine, body(RIGHT), protocol="kernelbench")
    assert report.outcome == "passed", report.reason
    assert (report.timing.pairs, report.timing.cache, report.timing.protocol) == (100, "warm", "kernelbench")


def test_a_reference_that_fails_is_reported_as_such_and_the_judge_goes_on(
    driver: Any, affine: Contract, contract_for: Callable[..., Contract]
) -> None:
    broken = affine.model_copy(update={"task": affine.task.model_copy(update={"source": "raise OSError('no disk')"})})
    event = driver.ask(broken, body(RIGHT))
    assert event["event"] == "failed" and "no disk" in event["error"]
    assert driver.judge(affine, body("return 17;")).outcome == "candidate_error"


def test_cut_claims_of_single_calls_are_seen_under_the_kernelbench_protocol_too(driver: Any, affine: Contract) -> None:
    cut = Path(__file__).parents[2] / "exploits/false_time/single_calls_cut.py"
    report = driver.judge(affine, python=cut.read_text(), protocol="kernelbench")
    assert report.outcome == "suspect" and "for each of 100 calls" in report.reason


def test_results_kept_from_call_to_call_win_nothing_under_the_kernelbench_protocol(
    driver: Any, affine: Contract
) -> None:
    """All inputs are compared, so that every answer is right; what is kept is slow to compute."""
    keep = "static float seen[512 * 256], kept[512 * 256];\n#include <cstring>\n"
    slow = f"for (volatile int k = 0; k < 40; k = k + 1) {{ {RIGHT} }}"
    again = "if (!memcmp(seen, x, sizeof seen)) { memcpy(y, kept, sizeof kept); return 0; }"
    code = body(f"{again} {slow} memcpy(seen, x, sizeof seen), memcpy(kept, y, sizeof kept);", keep)
    report = driver.judge(affine, code)
    assert report.outcome == "passed", report.reason
    replayed = driver.judge(affine, code, protocol="kernelbench")
    assert replayed.outcome == "suspect" and "results are kept" in replayed.reason
