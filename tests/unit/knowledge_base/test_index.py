"""Search is plain text, filtered, ranked, and safe from many threads."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.errors import NotFoundError, RequestError
from hiera_mcp.knowledge_base.entries import OPERATORS, parse_entry
from hiera_mcp.knowledge_base.fit import score, why
from hiera_mcp.knowledge_base.index import KnowledgeBase
from hiera_mcp.model.knowledge import Entry, SignalValue
from hiera_mcp.model.space import Direction, Space

BASE = KnowledgeBase.load()
SMALL = KnowledgeBase(BASE.entries[::3])
"""So few that no answer is cut at the limit."""


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
        ("transpose through a padded tile", "transpose-through-shared-memory"),
        ("bank conflicts", "xor-swizzled-shared-layout"),
        ("LSTM hidden state recurrence", "persistent-recurrent-kernel"),
        ("depthwise convolution", "depthwise-convolution"),
        ("groupnorm batch statistics fold", "batch-norm-folding-rules"),
        ("argmax ties", "arg-extrema-with-ties"),
        ("tcgen05", "tcgen05-blackwell"),
        ("_ZGVdN8v_expf", "vector-math-library-cpu"),
        ("cudnnConvolutionBiasActivationForward", "cudnn-conv-bias-activation"),
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


@given(st.text(max_size=60) | st.text(alphabet='"*():^-+ANDORTtitle ', max_size=40))
def test_no_query_is_syntax(query: str) -> None:
    found = BASE.search(query, limit=50)
    assert len({e.id for e in found}) == len(found)
    if not query.strip() or not any(c.isalnum() for c in query):
        assert bool(found) is not bool(query.strip())


@given(
    st.lists(st.sampled_from(["cp.async", "tile", "wgmma", "row", "the"]), min_size=1, max_size=4), st.text(max_size=9)
)
def test_quotes_change_nothing_and_further_words_only_add(words: list[str], junk: str) -> None:
    plain = SMALL.search(" ".join(words), limit=50)
    assert SMALL.search(" ".join(f'"{word}"' for word in words), limit=50) == plain
    more = SMALL.search(f"{' '.join(words)} {junk}", limit=50)
    assert {e.id for e in plain} <= {e.id for e in more}


@pytest.mark.parametrize("direction", [None, Direction.PARALLELISM])
@pytest.mark.parametrize("space", [None, Space.CUDA, Space.CPP_LIBRARIES])
@pytest.mark.parametrize("arch", [None, "cpu", "sm_80", "sm_90a"])
def test_filters_let_through_exactly_what_they_name(
    direction: Direction | None, space: Space | None, arch: str | None
) -> None:
    def passes(entry: Entry) -> bool:
        return (
            (direction is None or entry.direction in (direction, None))
            and (space is None or entry.allows_space(space))
            and (arch is None or entry.allows_arch(arch))
        )

    expected = {e.id for e in SMALL.entries if passes(e)}
    assert {e.id for e in SMALL.search("", direction, space, arch, limit=50)} == expected
    assert {e.id for e in SMALL.search("the of a and", direction, space, arch, limit=50)} <= expected


def test_in_a_large_base_rare_words_still_find_their_entry() -> None:
    common = [entry_text(f"common-{n}", "Common words everywhere") for n in range(1500)]
    kb = base(*common, entry_text("rare", "Common words and a quokka"))
    assert kb.search("common words quokka")[0].id == "rare"
    assert len(kb.search("common words")) == 5
    assert kb.search("quokka " + " ".join(f"w{n}" for n in range(2000)))[0].id == "rare"


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
        ({"arch": "ampere"}, "sm_80"),
        ({"arch": "sm_80+"}, "cpu"),
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
    known, unknown = score(entry, {"waves": 0.5, "gemm_share": 0.9}), score(entry, {"waves": None, "gemm_share": 0.9})
    assert known is not None and unknown is not None
    assert known - unknown == pytest.approx(0.5)
    assert "unknown: waves < 1" in why(entry, {"gemm_share": 0.9})


@pytest.mark.parametrize(
    "signals", [{}, {"gemm_share": 1.0, "waves": 0.5, "precision": "float32"}, {"scan_share": 1.0}]
)
def test_ranking_all_at_once_gives_each_entry_its_own_score(signals: Mapping[str, SignalValue]) -> None:
    together = {m.entry.id: m.score for m in BASE.matching(signals, arch="sm_90a", limit=50)}
    assert together
    assert all(score(BASE.entry(slug), signals, "sm_90a") == value for slug, value in together.items())


def test_with_words_and_a_situation_the_fitting_one_of_equal_hits_comes_first() -> None:
    waves, other = '[{signal: waves, op: "<", value: 1}]', '[{signal: waves, op: ">", value: 1}]'
    kb = base(
        entry_text("a-misfit", "Swizzle", signature=other),
        entry_text("b-fit", "Swizzle", signature=waves),
        entry_text("c-fit", "Another thing", signature=waves),
    )
    found = kb.matching({"gemm_share": 1.0, "waves": 0.5}, query="swizzle")
    assert [m.entry.id for m in found] == ["b-fit", "a-misfit"]


def test_entries_for_operators_that_do_not_occur_are_left_out() -> None:
    kb = base(entry_text("gemms"), entry_text("any-op", operators="[any]"))
    assert [m.entry.id for m in kb.matching({"gemm_share": 0.0, "waves": 0.5})] == ["any-op"]


def test_an_entry_for_exactly_this_architecture_breaks_a_tie() -> None:
    kb = base(entry_text("a-general"), entry_text("b-exact", archs="[sm_90a]"))
    assert [m.entry.id for m in kb.matching({"gemm_share": 1.0}, arch="cuda:sm_90a")] == ["b-exact", "a-general"]


def test_a_users_folder_is_merged_and_may_replace_an_entry(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text(entry_text("mine", "Quaternion trick"))
    (tmp_path / "wgmma-hopper.md").write_text(entry_text("wgmma-hopper", "House rules for wgmma", overrides="true"))
    kb = KnowledgeBase.load(tmp_path)
    assert [e.id for e in kb.search("quaternion")] == ["mine"]
    assert kb.entry("wgmma-hopper").title == "House rules for wgmma"
    assert len(kb.entries) == len(BASE.entries) + 1


def test_an_id_of_a_shipped_entry_is_not_taken_in_silence(tmp_path: Path) -> None:
    (tmp_path / "wgmma-hopper.md").write_text(entry_text("wgmma-hopper"))
    with pytest.raises(RequestError, match=r"wgmma-hopper.md: id: .* `overrides: true`"):
        KnowledgeBase.load(tmp_path)


def test_overriding_what_does_not_exist_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wgma-hopper.md").write_text(entry_text("wgma-hopper", overrides="true"))
    with pytest.raises(RequestError, match="overrides: there is no shipped entry wgma-hopper"):
        KnowledgeBase.load(tmp_path)


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


SITUATION = {f"{kind}_share": 0.0 for kind in OPERATORS} | {"platform": "cuda", "precision": "float32"}


@pytest.mark.parametrize(
    ("expected", "seen"),
    [
        ("gemv-by-warp-rows", {"gemm_share": 1.0, "arithmetic_intensity": 0.5, "floor_bound": "memory"}),
        ("small-k-output-bound-gemm", {"gemm_share": 1.0, "arithmetic_intensity": 16.0, "floor_bound": "memory"}),
        ("tiled-gemm-register-blocking", {"gemm_share": 1.0, "floor_bound": "math", "tensor_core_legal": False}),
        ("norm-of-long-rows-two-kernels", {"normalisation_share": 1.0, "compulsory_bytes": 6e8}),
        ("depthwise-convolution", {"conv_share": 1.0, "arithmetic_intensity": 4.0, "floor_bound": "memory"}),
        ("single-pass-scan", {"scan_share": 1.0, "launches": 1}),
        ("loss-in-one-pass", {"reduction_share": 0.4, "elementwise_share": 0.6, "fusion_ratio": 3.0, "launches": 9}),
        ("persistent-recurrent-kernel", {"gemm_share": 0.6, "elementwise_share": 0.4, "launches": 9000}),
        ("concat-by-offset", {"conv_share": 0.6, "movement_share": 0.2, "operators": 400, "fusion_ratio": 5.0}),
    ],
)
def test_at_the_first_step_a_task_finds_what_it_is_about(expected: str, seen: dict[str, SignalValue]) -> None:
    shares = {kind: float(seen.get(f"{kind}_share") or 0.0) for kind in OPERATORS}
    sums = {
        "contraction_share": shares["gemm"] + shares["conv"] + shares["attention"],
        "streaming_share": sum(shares[k] for k in ("reduction", "normalisation", "elementwise", "movement", "scan")),
    }
    found = BASE.matching({**SITUATION, **sums, "floor_seconds": 1e-3, **seen}, space="cuda", arch="sm_80", limit=5)
    assert expected in [match.entry.id for match in found]
