"""Fusable chains on traces made by hand. All values have 100 elements of float32 unless said otherwise: 400 bytes."""

from collections.abc import Iterator

from hand_made_traces import HandMade
from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.contracts.chains import COLUMNS, NAMED, ON_CHIP, TILE, chains_of
from hiera_mcp.contracts.flow import CONTRACTIONS, Flow
from hiera_mcp.model.contract import Chain, OperatorKind


def _names(chain: Chain) -> str:
    return " ".join(n.removeprefix("aten.") for n in chain.operators)


def _all_names(chains: list[Chain]) -> set[str]:
    return {_names(c) for c in chains}


def test_bias_and_activation_are_the_epilogue_of_a_product() -> None:
    t = HandMade()
    product = t.call("mm", [t.value("inputs.x"), t.value("state.w")], "gemm", reduced=4096)
    biased = t.call("add", [product, t.value("state.b")])
    t.output(t.call("relu", [biased]))
    (chain,) = t.chains()
    assert (_names(chain), chain.anchor, chain.length, chain.count) == ("mm add relu", "aten.mm", 3, 1)
    assert chain.saved_bytes == 4 * 400  # the product and the sum, each written and read
    assert (chain.crosses, chain.share) == (0, 1.0)


def test_an_activation_made_of_parts_that_read_one_value_twice_is_one_chain() -> None:
    t = HandMade()
    x = t.value("inputs.x")
    t.output(t.call("mul", [x, t.call("sigmoid", [x])]))
    (chain,) = t.chains()
    assert (_names(chain), chain.anchor) == ("sigmoid mul", "")
    assert chain.saved_bytes == 3 * 400  # the sigmoid written and read, and x read once more


def test_such_an_activation_follows_a_product() -> None:
    t = HandMade()
    y = t.conv(t.value("inputs.x"))
    t.output(t.call("mul", [y, t.call("sigmoid", [y])]))
    (chain,) = t.chains()
    assert _names(chain) == "convolution sigmoid mul"
    assert chain.saved_bytes == (1 + 2 + 1 + 1) * 400


def _softmax_by_hand(rows: int, columns: int) -> HandMade:
    t = HandMade()
    full, row = (rows, columns), (rows, 1)
    x = t.value("inputs.x", full)
    top = t.call("amax", [x], "reduction", row, reduced=columns)
    e = t.call("exp", [t.call("sub", [x, top], shape=full)], shape=full)
    total = t.call("sum", [e], "reduction", row, reduced=columns)
    t.output(t.call("div", [e, total], shape=full))
    return t


def test_a_softmax_by_hand_is_one_chain_that_crosses_its_rows() -> None:
    (chain,) = _softmax_by_hand(4, 1000).chains()
    assert (_names(chain), chain.crosses) == ("amax sub exp sum div", 1000)
    full, row = 4 * 4 * 1000, 4 * 4
    # x is read once less; the difference is written and read, its exponential written and read twice; so are both columns
    assert chain.saved_bytes == full + 2 * full + 3 * full + 2 * (row + row)


def test_reductions_too_long_for_a_block_are_not_crossed() -> None:
    assert len(_softmax_by_hand(2, ON_CHIP).chains()) == 1
    assert _all_names(_softmax_by_hand(2, ON_CHIP + 1).chains()) == {"sub exp"}


def test_what_another_operator_reads_stays_outside_of_the_epilogue() -> None:
    t = HandMade()
    x = t.value("inputs.x")
    first = t.call("relu", [t.conv(x)])
    second = t.conv(first)
    t.output(t.call("relu", [t.call("add", [second, first])]))
    assert _all_names(t.chains()) == {"convolution relu", "convolution add relu"}
    assert [c.saved_bytes for c in t.chains()] == [1600, 800]


def test_what_lies_between_two_products_belongs_to_the_earlier() -> None:
    t = HandMade()
    middle = t.call("relu", [t.call("mul", [t.conv(t.value("inputs.x"))])])
    t.output(t.conv(middle))
    (chain,) = t.chains()
    assert _names(chain) == "convolution mul relu"


def test_what_comes_before_the_first_product_is_its_prologue() -> None:
    t = HandMade()
    t.output(t.call("tanh", [t.conv(t.call("relu", [t.value("inputs.x")]))]))
    (chain,) = t.chains()
    assert (_names(chain), chain.anchor) == ("relu convolution tanh", "aten.convolution")


def test_a_product_takes_a_short_reduction_along_and_a_long_one_only_at_the_end() -> None:
    for reduced, names in ((TILE, "convolution mean add"), (TILE + 1, "convolution mean")):
        t = HandMade()
        mean = t.call("mean", [t.conv(t.value("inputs.x"))], "reduction", (10,), reduced=reduced)
        t.output(t.call("add", [mean], shape=(10,)))
        assert _all_names(t.chains()) == {names}


def test_a_sum_of_everything_is_an_epilogue() -> None:
    t = HandMade()
    t.output(t.call("sum", [t.call("relu", [t.value("inputs.x")])], "reduction", (), reduced=1 << 30))
    (chain,) = t.chains()
    assert (_names(chain), chain.crosses) == ("relu sum", 0)


def test_a_long_normalisation_parts_what_precedes_it_from_what_follows() -> None:
    t = HandMade()
    y = t.call("relu", [t.conv(t.value("inputs.x"))])
    normal = t.call("native_batch_norm", [y], "normalisation", reduced=ON_CHIP + 1)
    t.output(t.call("mul", [t.call("tanh", [normal])]))
    assert _all_names(t.chains()) == {"convolution relu", "native_batch_norm tanh mul"}


def test_a_long_normalisation_is_no_prologue_of_a_product() -> None:
    t = HandMade()
    normal = t.call("native_batch_norm", [t.value("inputs.x")], "normalisation", reduced=TILE + 1)
    t.output(t.conv(t.call("relu", [normal])))
    assert _all_names(t.chains()) == {"native_batch_norm relu"}


def test_a_short_normalisation_joins_the_product_before_it() -> None:
    t = HandMade()
    t.output(t.call("native_layer_norm", [t.conv(t.value("inputs.x"))], "normalisation", reduced=64))
    (chain,) = t.chains()
    assert (_names(chain), chain.crosses) == ("convolution native_layer_norm", 64)


def test_a_scan_of_any_length_takes_along_what_is_around_it() -> None:
    t = HandMade()
    scan = t.call("cumsum", [t.call("exp", [t.value("inputs.x")])], "scan", reduced=1 << 30)
    t.output(t.call("log", [scan]))
    (chain,) = t.chains()
    assert (_names(chain), chain.crosses) == ("exp cumsum log", 0)


def test_an_output_that_is_also_read_on_is_still_written() -> None:
    t = HandMade()
    first = t.call("relu", [t.value("inputs.x")])
    second = t.call("exp", [first])
    t.output(first, second)
    (chain,) = t.chains()
    assert chain.saved_bytes == 400  # it is read no more


def test_sorting_and_transforms_are_in_no_chain() -> None:
    t = HandMade()
    t.output(t.call("exp", [t.call("sort", [t.call("relu", [t.value("inputs.x")])], "other")]))
    assert t.chains() == []


def test_work_whose_result_nobody_wants_holds_nothing_back() -> None:
    t = HandMade()
    y = t.call("relu", [t.conv(t.value("inputs.x"))])
    t.call("mean", [y], "reduction", (), reduced=100)
    t.output(t.call("exp", [y]))
    (chain,) = t.chains()
    assert _names(chain) == "convolution relu exp"


def test_the_same_chain_is_listed_once_with_all_it_saves() -> None:
    t = HandMade()
    x = t.value("inputs.x")
    for _ in range(3):
        x = t.call("relu", [t.conv(x)])
    t.output(x)
    (chain,) = t.chains()
    assert (chain.count, chain.length, chain.saved_bytes, chain.share) == (3, 2, 3 * 800, 1.0)


def test_a_long_chain_is_cut_and_says_so() -> None:
    t = HandMade()
    x = t.value("inputs.x")
    for n in range(12):
        x = t.call(f"op{n}", [x])
    t.output(x)
    (chain,) = t.chains()
    assert (chain.length, len(chain.operators), chain.operators[-1]) == (12, 9, "… and 4 more")


def _attention(
    keys: int, head: int = 64, norm: str = "_softmax", factors: tuple[str, str] = ("self", "mat2")
) -> HandMade:
    t = HandMade()
    q, k, v = (t.value(f"inputs.{n}", (keys, head)) for n in "qkv")
    scores = t.call("bmm", [q, k], "gemm", (keys, keys), ("self", "mat2"), head)
    scaled = t.call("div", [scores], shape=(keys, keys))
    weights = t.call(norm, [scaled], "normalisation", (keys, keys), reduced=keys)
    kept = t.call("mul", [weights], shape=(keys, keys))
    t.output(t.call("bmm", [kept, v], "gemm", (keys, head), factors, keys))
    return t


def test_attention_by_hand_is_one_chain_at_any_length() -> None:
    for keys in (100, 16384):
        (chain,) = _attention(keys).chains()
        assert (_names(chain), chain.anchor, chain.crosses) == ("bmm div _softmax mul bmm", "aten.bmm, aten.bmm", keys)
        assert chain.saved_bytes == 4 * 2 * 4 * keys * keys


def test_products_stay_apart_where_the_second_cannot_take_the_first_tile_by_tile() -> None:
    for apart in (
        _attention(2048, head=COLUMNS + 1),  # accumulators of the second do not fit
        _attention(2048, norm="native_layer_norm"),  # its rows are not known before their end
        _attention(2048, factors=("mat2", "self")),  # the right factor is needed as a whole
    ):
        assert all("," not in c.anchor for c in apart.chains())


KINDS: list[tuple[OperatorKind, int]] = [
    ("elementwise", 1),
    ("elementwise", 1),
    ("movement", 1),
    ("reduction", 100),
    ("reduction", ON_CHIP + 1),
    ("normalisation", 50),
    ("normalisation", TILE + 1),
    ("scan", 1000),
    ("other", 1),
    ("conv", 9),
    ("gemm", 64),
]


@st.composite
def traces(draw: st.DrawFn) -> HandMade:
    """Random graphs; the last value and some others are outputs."""
    t = HandMade()
    known = [t.value("inputs.a"), t.value("inputs.b"), t.value("state.w")]
    for n in range(draw(st.integers(1, 24))):
        kind, reduced = draw(st.sampled_from(KINDS))
        reads = draw(st.lists(st.sampled_from(known[-6:]), min_size=1, max_size=3))
        known.append(t.call(f"{kind}{n % 5}", reads, kind, names=("self", "mat2", "bias"), reduced=reduced))
    t.output(known[-1], *draw(st.sets(st.sampled_from(known[3:]), max_size=2)))
    return t


def _members(t: HandMade) -> Iterator[list[int]]:
    """Numbers of the calls in each chain, told by operators that are all distinct."""
    flow = t.flow()
    distinct = Flow(
        flow.trace.model_copy(
            update={
                "operators": tuple(
                    flow.operator(c).model_copy(update={"name": f"{flow.operator(c).name}#{n}", "count": 1})
                    for n, c in enumerate(flow.trace.calls)
                ),
                "calls": tuple(c.model_copy(update={"operator": n}) for n, c in enumerate(flow.trace.calls)),
            }
        ),
        [1.0] * len(flow.trace.calls),
    )
    numbers = {o.name: n for n, o in enumerate(distinct.trace.operators)}
    for chain in chains_of(distinct):
        yield [numbers[name] for name in chain.operators if name in numbers]


@given(traces())
def test_chains_are_disjoint_and_convex_and_leave_at_one_place(t: HandMade) -> None:
    flow = t.flow()
    writer = {v: n for n, c in enumerate(flow.trace.calls) for v in c.writes}
    seen: set[int] = set()
    for members in _members(t):
        inside = set(members)
        assert not inside & seen
        seen |= inside
        if len(members) < NAMED:  # a longer one is named in part
            leaving = [
                n
                for n in members
                if not inside.issuperset(r for v in flow.trace.calls[n].writes for r in flow.readers[v])
            ]
            assert leaving in ([], [max(members)])
            assert not _returns(flow, inside, writer)


def _returns(flow: Flow, inside: set[int], writer: dict[int, int]) -> bool:
    """Whether some path leaves and comes back."""
    outside_after: set[int] = set()
    for n, call in enumerate(flow.trace.calls):
        before = {writer[v] for v in call.reads if v in writer}
        if n in inside and before & outside_after:
            return True
        if n not in inside and before & (inside | outside_after):
            outside_after.add(n)
    return False


@given(traces())
def test_chains_save_no_more_than_fusing_everything_and_take_no_more_than_all_the_time(t: HandMade) -> None:
    trace = t.trace()
    chains = t.chains()
    unfused = sum(o.count * (o.bytes_read + o.bytes_written) for o in trace.operators)
    read = {v for c in trace.calls for v in c.reads}
    compulsory = sum(
        v.nbytes for n, v in enumerate(trace.values) if v.owner.startswith("outputs.") or (v.owner and n in read)
    )
    assert sum(c.saved_bytes for c in chains) <= unfused - compulsory
    assert sum(c.share for c in chains) <= 1 + 1e-9
    assert all(c.saved_bytes > 0 and 0 < c.share <= 1 and c.length >= 2 for c in chains)


@given(traces())
def test_a_chain_has_one_contraction_or_two_products_that_stream(t: HandMade) -> None:
    kinds = {o.name: o.kind for o in t.operators}
    for chain in t.chains():
        anchors = [a for a in chain.anchor.split(", ") if a]
        assert len(anchors) <= 2
        assert all(kinds[a] in CONTRACTIONS for a in anchors)
        assert len(anchors) < 2 or {kinds[a] for a in anchors} == {"gemm"}
        named = [kinds[n] for n in chain.operators if n in kinds]
        assert sum(k in CONTRACTIONS for k in named) <= len(anchors)
        assert "other" not in named
