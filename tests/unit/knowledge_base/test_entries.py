"""Every shipped entry is valid, legal where it says it is, and sourced."""

from pathlib import Path
from typing import get_args

import pytest

from hiera_mcp.errors import RequestError
from hiera_mcp.knowledge_base.entries import OPERATORS, entries_in, packaged_entries, parse_entry
from hiera_mcp.knowledge_base.hardware import rows
from hiera_mcp.knowledge_base.index import KnowledgeBase
from hiera_mcp.model.contract import Floor, Precision
from hiera_mcp.model.knowledge import SIGNALS, Entry, SignalValue, arch_matches
from hiera_mcp.model.profile import Occupancy, Profile
from hiera_mcp.model.space import Direction, Space, spaces_of
from hiera_mcp.planning.legality import illegal_words
from hiera_mcp.resources.entry_text import entry_text
from hiera_mcp.sandbox import libraries

ENTRIES = packaged_entries()
FOLDERS = Path(__file__).parents[3] / "knowledge_base" / "entries"

TEXT_SIGNALS = {
    "platform": ("cpu", "cuda"),
    "precision": get_args(Precision),
    "floor_bound": get_args(Floor.model_fields["bound"].annotation),
    "bottleneck": get_args(Profile.model_fields["bottleneck"].annotation),
    "occupancy_limiter": get_args(Occupancy.model_fields["limiter"].annotation),
}
FLAGS = ("tensor_core_legal", "libraries_installed", "contraction_library")
SHARES = ("contraction", "streaming", *(kind for kind in OPERATORS if kind != "any"))
NUMBERS = (
    "operators", "launches", "parameters", "arithmetic_intensity", "intensity_over_ridge", "floor_seconds",
    "compulsory_bytes", "fusion_ratio", "footprint_over_cache", "fusable_share", "library_share", "depth",
    "longest_reduction",
)  # fmt: skip
FIRST_STEP: dict[str, SignalValue] = {
    "platform": "cuda",
    "precision": "float32",
    "floor_bound": "memory",
    "tensor_core_legal": True,
    **{f"{kind}_share": 0.1 for kind in SHARES},
    **dict.fromkeys(NUMBERS, 1.0),
}
"""What a contract tells long before there is a candidate."""
NEED_EVIDENCE = ("no-local-memory", "privatise-then-atomics", "occupancy-limiter", "compile-time-shapes")
LIBRARIES = {library.name for target in ("cpu", "cuda:sm_80") for library in libraries.known(target)}
BASE = KnowledgeBase(ENTRIES)
KERNELBENCH = """
    matmul bmm einsum triu tril diag tall-skinny ReLU LeakyReLU Sigmoid Tanh softmax LogSoftmax Swish GELU SELU HardSigmoid
    Softplus Softsign ELU HardTanh BatchNorm InstanceNorm GroupNorm RMSNorm LayerNorm MaxPool1d MaxPool2d MaxPool3d
    AvgPool1d AvgPool2d AvgPool3d argmax argmin sum mean Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d
    ConvTranspose3d depthwise pointwise cumsum cumprod MSELoss CrossEntropyLoss HuberLoss KLDivLoss TripletMarginLoss
    HingeLoss scaled_dot_product_attention Mish HardSwish clamp logsumexp dropout residual MLP LeNet AlexNet VGG ResNet
    GoogleNet Inception SqueezeNet MobileNet EfficientNet RegNet DenseNet ShuffleNet UNet ViT Swin RNN LSTM GRU minGPT
    NetVLAD Mamba2
    """.split()  # noqa: SIM905
"""Operators and networks of its levels 1 to 3."""

VALID = """---
id: my-entry
title: My entry
direction: parallelism
spaces: [cuda]
archs: [sm_80+]
operators: [gemm]
signature:
  - {signal: waves, op: "<", value: 1}
steps: [Do it.]
must_move: waves
expected: rises
cost: low
sources:
  - {title: t, url: "https://example.org"}
---
Text.
"""


def test_all_directions_libraries_cpu_and_both_gpu_generations_are_covered() -> None:
    directions = {e.direction for e in ENTRIES}
    assert directions == {*Direction, None}
    for arch in ("cpu", "sm_80", "sm_90a"):
        for direction in Direction:
            assert any(e.direction is direction and e.allows_arch(arch) for e in ENTRIES), (arch, direction)
    assert any(e.archs == ("sm_90a",) for e in ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_an_entry_lies_in_the_folder_of_its_direction(entry: Entry) -> None:
    assert (FOLDERS / (entry.direction or "libraries") / f"{entry.id}.md").is_file()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_the_steps_of_an_entry_are_legal_wherever_it_may_be_proposed(entry: Entry) -> None:
    targets = ["cpu", *dict.fromkeys(t for row in rows() for t in row.default_for)]
    text = "\n".join([entry.title, *entry.steps, *entry.parameters.values()])
    checked = 0
    for target in targets:
        arch = target.partition(":")[2] or "cpu"
        for space in spaces_of(target):
            if entry.allows_arch(arch) and entry.allows_space(space):
                assert illegal_words(text, space, target) is None
                checked += 1
    assert checked > 0


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_an_entry_cites_sources_over_https(entry: Entry) -> None:
    assert all(source.url.startswith("https://") for source in entry.sources)


@pytest.mark.parametrize(
    ("pattern", "arch", "expected"),
    [
        ("cuda", "sm_75", True),
        ("cuda", "cpu", False),
        ("cpu", "cpu", True),
        ("sm_80+", "sm_90a", True),
        ("sm_80+", "sm_75", False),
        ("sm_80+", "cpu", False),
        ("sm_90+", "sm_100a", True),
        ("sm_90a", "sm_90a", True),
        ("sm_90a", "sm_90", False),
        ("sm_90a", "sm_100a", False),
        ("sm_80", "sm_80", True),
        ("sm_80", "sm_86", False),
    ],
)
def test_architectures_match_by_number_and_suffix(pattern: str, arch: str, expected: bool) -> None:
    assert arch_matches(pattern, arch) is expected


def test_a_space_implies_the_larger_ones_of_its_platform() -> None:
    entry = parse_entry(VALID.replace("spaces: [cuda]", "spaces: [cuda_libraries]"), "f")
    assert [entry.allows_space(s) for s in Space] == [False, True, True, False, False, False]


def test_a_valid_file_is_read_with_its_body() -> None:
    entry = parse_entry(VALID, "f")
    assert (entry.id, entry.body, entry.kind) == ("my-entry", "Text.", "technique")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("---\nid", "id", "no YAML front matter"),
        ("steps: [Do it.]", "steps: []", "steps"),
        ("signal: waves", "signal: moon_phase", "moon_phase"),
        ("operators: [gemm]", "operators: [matmul]", "matmul"),
        ("archs: [sm_80+]", "archs: [ampere]", "ampere"),
        ("archs: [sm_80+]", "archs: [cpu]", "disagree about"),
        ("spaces: [cuda]", "spaces: [cuda, cuda_libraries]", "smallest"),
        ("id: my-entry", "id: My Entry", "lower-case"),
        ("must_move: waves", "must_move: luck", "luck"),
        ("cost: low", "cost: cheap", "cost"),
        ('url: "https', 'link: "https', "sources"),
        ("title: My entry", "title: [", "f: "),
    ],
)
def test_a_broken_file_is_refused_with_its_name_and_fault(old: str, new: str, says: str) -> None:
    assert old in VALID
    with pytest.raises(RequestError, match=says) as caught:
        parse_entry(VALID.replace(old, new, 1), "f")
    assert str(caught.value).startswith("f: ")


def test_a_folder_of_own_entries_is_read_recursively(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "my-entry.md").write_text(VALID)
    assert [e.id for e in entries_in(tmp_path)] == ["my-entry"]


def test_a_file_must_be_called_like_its_entry(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(VALID)
    with pytest.raises(RequestError, match="must be called"):
        entries_in(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="does not exist"):
        entries_in(tmp_path / "none")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_a_condition_compares_a_signal_with_a_value_that_it_can_have(entry: Entry) -> None:
    for condition in entry.signature:
        if condition.signal in TEXT_SIGNALS:
            assert condition.value in TEXT_SIGNALS[condition.signal], str(condition)
        elif condition.signal in FLAGS:
            assert isinstance(condition.value, bool), str(condition)
        else:
            assert isinstance(condition.value, float | int) and not isinstance(condition.value, bool), str(condition)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_what_an_entry_is_for_can_be_told_before_anything_is_profiled(entry: Entry) -> None:
    at_the_start = {**dict.fromkeys(SIGNALS), **FIRST_STEP}
    if entry.id in NEED_EVIDENCE:
        pytest.skip("it is about what a profile or a build shows")
    assert any(condition.holds(at_the_start) is not None for condition in entry.signature)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_an_entry_about_a_library_says_which_one_the_host_must_have(entry: Entry) -> None:
    assert set(entry.libraries) <= LIBRARIES
    needs = {Space.CUDA_LIBRARIES, Space.CPP_LIBRARIES} & set(entry.spaces)
    assert bool(entry.libraries) is bool(needs)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_an_entry_can_be_read_at_one_glance(entry: Entry) -> None:
    assert len(entry_text(entry)) < 5_000
    assert len(entry.title) <= 72


def test_no_two_entries_have_the_same_title() -> None:
    assert len({entry.title for entry in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("word", KERNELBENCH)
def test_there_is_an_entry_for_what_the_tasks_of_kernelbench_are_made_of(word: str) -> None:
    found = BASE.search(word, limit=5)
    assert any(word.lower() in entry_text(entry).lower() or word in entry.keywords for entry in found)


def test_the_example_of_the_documentation_is_a_valid_entry() -> None:
    page = (FOLDERS.parents[1] / "docs" / "knowledge.md").read_text()
    entry = parse_entry(page.partition("```markdown\n")[2].partition("```\n")[0], "docs/knowledge.md")
    assert entry.id == "rows-per-warp"
    assert set(entry.model_fields_set) >= set(Entry.model_fields) - {"overrides"}, "it shows every field"
