"""What a user's folder means, and what is said when it means nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.client.folder import read_folder, task_name
from hiera_mcp.client.preflight import demo_folder
from hiera_mcp.errors import RequestError

Make = Callable[[dict[str, str]], Path]
GOOD = {"task.py": "class Model: ...", "round1/a.cu": "// a"}


def said(make: Make, files: dict[str, str]) -> str:
    with pytest.raises(RequestError) as error:
        read_folder(make(files))
    return str(error.value)


def test_one_task_and_one_candidate_are_enough(make: Make) -> None:
    script = read_folder(make(GOOD))
    assert (script.name, script.target, script.precision) == ("mytask", "auto", "float32")
    assert [(c.name, c.sources) for c in script.rounds[0].candidates] == [("a", {"a.cu": "// a"})]
    assert script.rounds[0].space.choice == "recommended"
    assert script.rounds[0].strategy is None


def test_the_only_python_file_is_the_task_and_names_it(make: Make) -> None:
    script = read_folder(make({"softmax.py": "x", "round1/a.cu": "y"}))
    assert script.name == "softmax"


def test_a_reference_is_called_after_its_file_and_task_py_after_its_folder() -> None:
    assert task_name(Path("/home/me/softmax/task.py")) == "softmax"
    assert task_name(Path("/home/me/softmax/rmsnorm.py")) == "rmsnorm"


def test_run_toml_may_say_what_planning_does_without(make: Make) -> None:
    assert read_folder(make(GOOD | {"run.toml": 'plan = ["no-directions"]'})).plan == ("no-directions",)


def test_a_lone_python_candidate_is_a_model_new(make: Make) -> None:
    script = read_folder(make(GOOD | {"round1/b.py": "class ModelNew: ..."}))
    assert script.rounds[0].candidates[1].sources == {"model_new.py": "class ModelNew: ..."}


def test_a_folder_is_one_candidate_of_several_files(make: Make) -> None:
    script = read_folder(make({"task.py": "x", "round1/c/kernel.cu": "1", "round1/c/anything.py": "2"}))
    (candidate,) = script.rounds[0].candidates
    assert candidate.name == "c"
    assert candidate.sources == {"kernel.cu": "1", "model_new.py": "2"}


def test_rounds_are_ordered_by_number_not_by_name(make: Make) -> None:
    files = {f"round{n}/c{n}.cu": "x" for n in range(1, 12)}
    script = read_folder(make({"task.py": "x"} | files))
    assert [one.candidates[0].name for one in script.rounds] == [f"c{n}" for n in range(1, 12)]


def test_only_the_first_rounds_are_kept_when_asked(make: Make) -> None:
    files = GOOD | {"round2/b.cu": "x", "run.toml": "[round2]\nspace = 'cuda'\n"}
    assert len(read_folder(make(files), rounds=1).rounds) == 1


def test_notes_hidden_files_and_caches_are_passed_over(make: Make) -> None:
    script = read_folder(make(GOOD | {"round1/notes.md": "x", "round1/.b.cu": "x", "round1/__pycache__/c.cu": "x"}))
    assert [c.name for c in script.rounds[0].candidates] == ["a"]


def test_run_toml_sets_target_decisions_ideas_and_parents(make: Make) -> None:
    toml = """
        target = "cuda:sm_90a"
        precision = "bfloat16"
        goal = "faster"
        [round1]
        space = "cuda"
        space_reason = "fusion"
        [round1.strategy]
        title = "fuse"
        steps = ["one kernel"]
        [round1.ideas]
        a = "one block per row"
        [round2.parents]
        b = "a"
    """
    script = read_folder(make(GOOD | {"round2/b.cu": "// b", "run.toml": toml}))
    first, second = script.rounds
    assert (script.target, script.precision, script.goal) == ("cuda:sm_90a", "bfloat16", "faster")
    assert (first.space.choice, first.space.reason) == ("cuda", "fusion")
    assert first.strategy is not None
    assert first.strategy.within("cuda", "parallelism").title == "fuse"
    assert first.candidates[0].idea == "one block per row"
    assert second.candidates[0].parent == "a"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"round1/a.cu": "x"}, "There is no task file"),
        ({"a.py": "x", "b.py": "x", "round1/a.cu": "x"}, "Valid: a.py, b.py"),
        ({"task.py": "x"}, "There is no round1/"),
        ({"task.py": "x", "round1/notes.md": "x"}, "holds no candidate"),
        (GOOD | {"round3/b.cu": "x"}, "without a gap"),
        (GOOD | {"round1/a.py": "x"}, "both called `a`"),
        (GOOD | {"round1/b.rs": "x"}, "b.rs is not a candidate"),
        (GOOD | {"round1/b c.cu": "x"}, "`b c` cannot be a candidate's name"),
        (GOOD | {"round1/b.cu": " \n"}, "b.cu is empty"),
        (GOOD | {"round1/b/x.cu": "x", "round1/b/y.cu": "x"}, "several *.cu files: x.cu, y.cu"),
        (GOOD | {"round1/b/x.h": "x"}, "x.h cannot be part of a candidate"),
        (GOOD | {"round2/a.cu": "x"}, "`a` exists in two rounds"),
        (GOOD | {"run.toml": "task = 'other.py'"}, "names the task other.py"),
        (
            GOOD | {"run.toml": "tarmget = 'cpu'"},
            "`tarmget`: Extra inputs are not permitted. Valid: task, name, target",
        ),
        (GOOD | {"run.toml": "[round1]\nspaces = 'cpp'"}, "Valid: space, space_reason"),
        (GOOD | {"run.toml": "[round2]\nspace = 'cpp'"}, "no folder round2"),
        (GOOD | {"run.toml": "[round1.ideas]\nb = 'x'"}, "[round1.ideas] names `b`"),
        (GOOD | {"run.toml": "[round1.parents]\na = 'z'"}, "builds on `z`, not in an earlier round"),
        (GOOD | {"run.toml": "target ="}, "not valid TOML"),
        (GOOD | {"run.toml": "precision = 'float8'"}, "`precision`"),
    ],
)
def test_what_is_wrong_in_a_folder_is_said(make: Make, files: dict[str, str], expected: str) -> None:
    assert expected in said(make, files)


def test_a_folder_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="is not a folder"):
        read_folder(tmp_path / "nowhere")


def test_a_file_that_is_not_text_is_said(make: Make) -> None:
    root = make(GOOD)
    (root / "round1" / "b.cu").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RequestError, match=r"b\.cu cannot be read as UTF-8"):
        read_folder(root)


@given(text=st.text(max_size=200))
def test_no_run_toml_ends_in_anything_but_a_script_or_a_request_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    root = tmp_path_factory.mktemp("folder")
    (root / "round1").mkdir()
    (root / "task.py").write_text("x")
    (root / "round1" / "a.cu").write_text("x")
    (root / "run.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        assert read_folder(root).rounds
    except RequestError as error:
        assert "run.toml" in str(error)


@pytest.mark.parametrize(("target", "suffix"), [("cpu", ".cpp"), ("cuda:sm_90a", ".cu")])
def test_the_demo_has_two_rounds_of_three_or_more_for_its_target(target: str, suffix: str) -> None:
    script = read_folder(demo_folder(target))
    assert [len(one.candidates) >= 3 for one in script.rounds] == [True, True]
    assert all(name.endswith(suffix) for one in script.rounds for c in one.candidates for name in c.sources)
    assert all(c.idea for one in script.rounds for c in one.candidates)


EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.mark.parametrize("folder", sorted(p.parent for p in EXAMPLES.glob("*/round1")), ids=lambda p: p.name)
def test_every_example_folder_can_be_read_and_is_listed(folder: Path) -> None:
    script = read_folder(folder)
    assert all(one.candidates for one in script.rounds)
    assert f"`{folder.name}`" in (EXAMPLES / "README.md").read_text()
