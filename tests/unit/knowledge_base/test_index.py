"""Search is plain text, filtered, ranked, and safe from many threads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.errors import NotFoundError, RequestError
from hiera_mcp.knowledge_base.entries import parse_entry
from hiera_mcp.knowledge_base.index import KnowledgeBase, match
from hiera_mcp.model.space import Direction, Space

BASE = KnowledgeBase.load()


def entry_text(slug: str, title: str = "Title", **changes: str) -> str:
    values = {
        "direction": "parallelism",
        "spaces": "[cuda]",
        "archs": "[sm_80+]",
        "operators": "[gemm]",
        "signature": '[{signal: waves, op: "<", value: 1}, {signal: gemm_share, op: ">", value: 0.5}]',
        "steps": "[Do it.]",
        "must_move": "waves",
        "expected": "rises",
        "cost": "low",
        "sources": '[{title: t, url: "https://example.org"}]',
    }
    lines = [f"{key}: {value}" for key, value in {**values, **changes}.items()]
    return "\n".join(["---", f"id: {slug}", f"title: {title}", *lines, "---", "Body."])


def base(*texts: str) -> KnowledgeBase:
    return KnowledgeBase(parse_entry(text, "f") for text in texts)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("cp.async", "cp-async-multistage"),
        ("wgmma", "wgmma-hopper"),
        ("mma.sync m16n8k16", "mma-sync-ldmatrix"),
        ("bank conflicts when transposing", "transpose-through-shared-memory"),
        ("__shfl_xor_sync", "warp-shuffle-reduction"),
        ("cblas_sgemm", "blas-gemm-cpu"),
        ("CUBLASLT_EPILOGUE", "cublaslt-gemm-epilogue"),
        ("omp parallel schedule(static)", "openmp-static-scheduling"),
    ],
)
def test_what_people_type_finds_the_entry_first(query: str, expected: str) -> None:
    assert BASE.search(query)[0].id == expected


def test_an_architecture_can_be_searched_for_as_text() -> None:
    found = BASE.search("sm_80+", limit=20)
    assert "cp-async-multistage" in [e.id for e in found[:5]]
    assert all("sm_80" in e.model_dump_json() for e in found)


@given(st.text(max_size=60))
def test_no_query_is_syntax(query: str) -> None:
    BASE.search(query)


@pytest.mark.parametrize(
    "query", ['"', "NOT", "a AND", "title:x", "x*", "(", "NEAR(a b)", "-x", "***", "a\x00b", "\ud800", "'; drop"]
)
def test_operators_of_the_index_are_plain_text(query: str) -> None:
    BASE.search(query)


def test_filters_hold_with_and_without_a_query() -> None:
    for query in ("", "tile"):
        found = BASE.search(query, Direction.REUSE_PIPELINING, Space.CUDA, "cuda:sm_80", limit=50)
        assert found
        assert all(e.direction is Direction.REUSE_PIPELINING for e in found)  # the cuda space admits no library
        assert all(e.allows_arch("sm_80") and e.allows_space(Space.CUDA) for e in found)


def test_library_entries_pass_any_direction_where_the_space_allows_them() -> None:
    found = BASE.search("", "reuse_pipelining", "cuda_libraries", "sm_80", limit=50)
    assert "cublaslt-gemm-epilogue" in [e.id for e in found]


@pytest.mark.parametrize(
    ("options", "valid"),
    [
        ({"direction": "sideways"}, "parallelism"),
        ({"space": "fortran"}, "cuda_libraries"),
        ({"limit": 0}, "1 to 50"),
        ({"limit": 51}, "1 to 50"),
    ],
)
def test_wrong_arguments_are_refused_with_the_valid_values(options: dict[str, Any], valid: str) -> None:
    with pytest.raises(RequestError) as caught:
        BASE.search("x", **options)
    assert valid in caught.value.valid


def test_a_word_in_the_title_outweighs_one_in_the_text() -> None:
    kb = base(
        entry_text("in-text", "Something", steps="[Use swizzling here and there.]"), entry_text("in-title", "Swizzling")
    )
    assert [e.id for e in kb.search("swizzling")] == ["in-title", "in-text"]


def test_an_unknown_slug_is_answered_with_near_ones() -> None:
    with pytest.raises(NotFoundError) as caught:
        BASE.entry("wgmma-on-hopper")
    assert "wgmma-hopper" in caught.value.valid
    assert BASE.entry("wgmma-hopper").archs == ("sm_90a",)


def test_an_entry_whose_conditions_hold_ranks_first() -> None:
    kb = base(entry_text("fails", signature='[{signal: waves, op: ">", value: 9}]'), entry_text("holds"))
    first, second = kb.matching({"waves": 0.5, "gemm_share": 0.9})
    assert (first.entry.id, second.entry.id) == ("holds", "fails")
    assert first.why == "holds: waves < 1 (0.5), gemm_share > 0.5 (0.9)"
    assert second.why.startswith("fails: waves > 9")


def test_an_unknown_signal_neither_helps_nor_hurts() -> None:
    entry = parse_entry(entry_text("e"), "f")
    known, unknown = match(entry, {"waves": 0.5, "gemm_share": 0.9}), match(entry, {"waves": None, "gemm_share": 0.9})
    assert known is not None and unknown is not None
    assert known.score - unknown.score == pytest.approx(0.5)
    assert "unknown: waves < 1" in unknown.why


def test_entries_for_operators_that_do_not_occur_are_left_out() -> None:
    kb = base(entry_text("gemms"), entry_text("any-op", operators="[any]"))
    assert [m.entry.id for m in kb.matching({"gemm_share": 0.0, "waves": 0.5})] == ["any-op"]


def test_an_entry_for_exactly_this_architecture_breaks_a_tie() -> None:
    kb = base(entry_text("a-general"), entry_text("b-exact", archs="[sm_90a]"))
    assert [m.entry.id for m in kb.matching({"gemm_share": 1.0}, arch="cuda:sm_90a")] == ["b-exact", "a-general"]


def test_a_users_folder_is_merged_and_may_replace_an_entry(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text(entry_text("mine", "Quaternion trick"))
    (tmp_path / "wgmma-hopper.md").write_text(entry_text("wgmma-hopper", "House rules for wgmma"))
    kb = KnowledgeBase.load(tmp_path)
    assert [e.id for e in kb.search("quaternion")] == ["mine"]
    assert kb.entry("wgmma-hopper").title == "House rules for wgmma"
    assert len(kb.entries) == len(BASE.entries) + 1


def test_an_empty_knowledge_base_finds_nothing() -> None:
    kb = KnowledgeBase([])
    assert kb.search("x") == kb.search() == kb.matching({}) == ()


def test_many_threads_read_at_once() -> None:
    def slugs(word: str) -> list[str]:
        return [e.id for e in BASE.search(word)]

    words = ["wgmma", "softmax", "openmp", "tile", "cp.async", "scan"] * 20
    expected = [slugs(word) for word in words]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(slugs, words)) == expected
