"""The whole loop by an agent that reads nothing but `next_step`, from hiera_guide to hiera_run_finish.

Over stdio in three rounds, in memory and over HTTP in one, each on the real executor: real compilers, real sandbox, real
verdicts.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any

import anyio
import pytest
from mcp import Client

from hiera_mcp.client.connect import in_memory, over_http, over_stdio
from hiera_mcp.deps import open_deps
from hiera_mcp.server import create_server
from hiera_mcp.settings import Settings

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(which("g++") is None, reason="needs g++ to compile candidates"),
    pytest.mark.skipif(which("bwrap") is None, reason="bubblewrap is not installed"),
    pytest.mark.timeout(300),
]

REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.bias = nn.Parameter(torch.linspace(-1.0, 1.0, 512))
        self.scale = scale

    def forward(self, x):
        return torch.relu(torch.tanh(x * self.scale) + self.bias) * self.scale

def get_inputs():
    return [torch.randn(512, 512)]

def get_init_inputs():
    return [0.5]
"""

RIGHT = """
#include "contract.h"
#include <cmath>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    #pragma omp parallel for
    for (int i = 0; i < 512; ++i)
        for (int j = 0; j < 512; ++j) {
            const float v = std::tanh(in->x[i * 512 + j] * 0.5f) + p->bias[j];
            out->out[i * 512 + j] = (v > 0.0f ? v : 0.0f) * 0.5f;
        }
    return 0;
}
"""

CANDIDATES = [
    {"broken": RIGHT.replace("return 0;", "return 0"), "wrong": RIGHT.replace("p->bias[j]", "0.0f")},
    {"right": RIGHT, "outside": "#include <ATen/ATen.h>\n" + RIGHT},
    {"rows": RIGHT.replace("parallel for", "parallel for schedule(static)"), "serial": RIGHT.replace("#pragma", "//")},
]
"""What the agent writes, round by round."""
SHORT = [{"wrong": RIGHT.replace("p->bias[j]", "0.0f"), "right": RIGHT}]
"""The same in one round, where only the way to the server is another one."""
WAYS = {"stdio": CANDIDATES, "in memory": SHORT, "HTTP": SHORT}
VERDICTS = {
    "broken": "compile_error",
    "wrong": "wrong_output",
    "right": "passed",
    "outside": "invalid_space",
    "rows": "passed",
    "serial": "passed",
}
MOST_CHARACTERS = 40_000
"""About 10,000 tokens."""

Answer = dict[str, Any]


@dataclass
class Agent:
    """Does what the last `next_step` says, and fills in what an agent has to write itself."""

    client: Client
    submissions: list[dict[str, str]]
    """Name → source of each candidate, round by round."""
    steps: list[tuple[str, Answer]] = field(default_factory=list[tuple[str, Answer]])
    """Tool and answer, in order."""
    submitted: int = 0

    async def walk(self) -> None:
        sentence = 'hiera_guide(topic="loop")'
        while not (self.steps and self.steps[-1][0] == "hiera_run_finish"):
            assert len(self.steps) < 60, f"no end in sight: {sentence}"
            tool, arguments = self._call_in(sentence)
            result = await self.client.call_tool(tool, arguments)
            assert not result.is_error, (tool, arguments, result.content)
            answer: Answer = dict(result.structured_content or {})
            self.steps.append((tool, answer))
            sentence = str(answer["next_step"])

    def _call_in(self, sentence: str) -> tuple[str, Answer]:
        """The first call of a sentence, with the ids that it names."""
        found = re.search(r"(hiera_\w+)\(([^()]*)\)", sentence)
        assert found, f"no call in: {sentence}"
        tool, words = found.groups()
        pairs: list[tuple[str, str, str]] = re.findall(r"(\w+)=(?:\"([^\"]*)\"|'([^']*)'|[\[.{])", words)
        given = {name: one or other for name, one, other in pairs if one or other}
        open_ = {name for name, one, other in pairs if not (one or other)}
        return tool, given | self._written(tool, open_)

    def _written(self, tool: str, names: set[str]) -> Answer:
        own: Answer = {}
        if tool == "hiera_contract_build":
            own = {"source": REFERENCE, "name": "tanh_bias_relu", "target": "cpu"}
        if tool == "hiera_run_start":
            own = {"rounds": len(self.submissions), "candidates_per_round": 2}
        if tool == "hiera_candidates_evaluate":
            texts = self.submissions[self.submitted]
            self.submitted += 1
            own = {"candidates": [{"name": n, "sources": {"cpu_source.cpp": t}} for n, t in texts.items()]}
        assert names <= set(own), f"{tool} asks for {names}"
        return own


@dataclass(frozen=True)
class Walk:
    """One finished run."""

    submissions: list[dict[str, str]]
    steps: list[tuple[str, Answer]]
    data_dir: Path
    tools: list[str]
    log: str
    """Lines with `error` of the log of the first candidate."""

    def answers(self, tool: str) -> list[Answer]:
        return [answer for name, answer in self.steps if name == tool]

    @property
    def finish(self) -> Answer:
        return self.steps[-1][1]


@contextmanager
def http_server(data_dir: Path) -> Any:
    """A server on a free port; yields its URL."""
    command = [sys.executable, "-m", "hiera_mcp", "serve", "--http", "--port", "0", "--data-dir", str(data_dir)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        while (found := re.search(r"http://[^/\s]+:\d+/mcp", line)) is None:
            line = process.stderr.readline()
            assert line, "the server ended"
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=20)


@asynccontextmanager
async def reached_by(way: str, data_dir: Path) -> AsyncGenerator[Client]:
    if way == "in memory":
        async with in_memory(create_server(lambda: open_deps(Settings(data_dir=data_dir)))) as client:
            yield client
    elif way == "stdio":
        with (data_dir.parent / "server.log").open("w") as log:
            async with over_stdio(os.environ | {"HIERA_DATA_DIR": str(data_dir)}, log) as client:
                yield client
    else:
        with http_server(data_dir) as url:
            async with over_http(url) as client:
                yield client


@pytest.fixture(scope="module", params=WAYS)
def walk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """One run for each way to reach a server; all tests look at it."""
    data_dir = tmp_path_factory.mktemp("loop") / "data"

    async def run() -> Walk:
        async with reached_by(request.param, data_dir) as client:
            agent = Agent(client, WAYS[request.param])
            tools = [tool.name for tool in (await client.list_tools()).tools]
            await agent.walk()
            first = agent.steps[-1][1]["run"]["candidates"][0]
            page = await client.call_tool("hiera_artifact_read", {"uri": first["log_uri"], "grep": "error"})
        text = str(dict(page.structured_content or {}).get("text"))
        return Walk(agent.submissions, agent.steps, data_dir, tools, text)

    return anyio.run(run)


def test_next_step_alone_leads_from_the_guide_to_the_export(walk: Walk) -> None:
    tools = [tool for tool, _ in walk.steps]
    assert tools[:3] == ["hiera_guide", "hiera_contract_build", "hiera_run_start"]
    assert {"hiera_plan_space", "hiera_plan_direction", "hiera_plan_strategy"} < set(tools)
    assert ("hiera_candidate_profile" in tools) == (len(walk.submissions) > 1), "the second round has one to look at"
    assert tools[-1] == "hiera_run_finish"
    assert walk.finish["run"]["round"] == len(walk.submissions)


def test_each_candidate_gets_its_verdict_and_the_best_is_timed(walk: Walk) -> None:
    run = walk.finish["run"]
    found = {row["name"]: row["status"] for row in run["candidates"]}
    assert found == {name: VERDICTS[name] for texts in walk.submissions for name in texts}
    assert run["best"]["status"] == "passed"
    speedup = run["best"]["speedup"]
    assert speedup["low"] <= speedup["median"] <= speedup["high"]


def test_the_log_of_a_candidate_is_read_by_pattern(walk: Walk) -> None:
    assert ("cpu_source.cpp:" in walk.log) == ("broken" in walk.submissions[0])
    assert all("error" in line for line in walk.log.splitlines())


def test_evidence_is_seen_before_each_choice_is_recorded(walk: Walk) -> None:
    for kind in ("space", "direction", "strategy"):
        plans = walk.answers(f"hiera_plan_{kind}")
        assert [plan["recorded"] for plan in plans] == [False, True] * (len(plans) // 2)


def test_the_database_holds_every_decision_verdict_and_time(walk: Walk) -> None:
    run = walk.finish["run"]
    with sqlite3.connect(walk.data_dir / "hiera.db") as db:
        decisions = db.execute("SELECT round, kind, choice FROM decisions ORDER BY rowid").fetchall()
        sql = "SELECT c.name, e.status, e.speedup FROM evaluations e JOIN candidates c ON c.id = e.candidate_id"
        verdicts = {name: (status, speedup) for name, status, speedup in db.execute(sql)}
        open_jobs = db.execute("SELECT count(*) FROM jobs WHERE state != 'done'").fetchone()[0]
    assert decisions == [(d["round"], d["kind"], d["choice"]) for d in run["decisions"]]
    shown = {r["name"]: (r["status"], r["speedup"] and r["speedup"]["median"]) for r in run["candidates"]}
    assert verdicts == shown
    assert open_jobs == 0


def test_the_winner_is_exported_with_its_contract(walk: Walk) -> None:
    folder, best = Path(walk.finish["export_dir"]), walk.finish["run"]["best"]["name"]
    texts = {name: text for submission in walk.submissions for name, text in submission.items()}
    assert (folder / "cpu_source.cpp").read_text() == texts[best]
    assert (folder / "contract.h").exists()
    assert json.loads((folder / "summary.json").read_text())["best"]["name"] == best


def test_every_result_fits_into_ten_thousand_tokens_and_names_a_tool_that_exists(walk: Walk) -> None:
    for tool, answer in walk.steps:
        assert len(json.dumps(answer)) < MOST_CHARACTERS, tool
        assert set(re.findall(r"\b(hiera_[a-z_]+)\(", answer["next_step"])) <= set(walk.tools)
