"""Chains, reductions, reuse and launches of small real modules, against hand counts."""

from collections.abc import Callable

import pytest

from hiera_mcp.contracts.features import features_of
from hiera_mcp.model.contract import Chain, Features, Reduction, Reuse
from hiera_mcp.model.hardware import Peaks
from hiera_mcp.model.space import Target
from hiera_mcp.model.work import Trace

Tracer = Callable[..., Trace]
TaskText = Callable[..., str]
FeaturesOf = Callable[..., Features]

PEAKS = Peaks(bandwidth=1e12, flops={"fp32": 1e13, "tf32_tensor": 9e13}, basis="round numbers")
IMAGE = "[torch.rand(2, 4, 6, 8)]"


@pytest.fixture
def features(trace: Tracer, task_text: TaskText) -> FeaturesOf:
    """The features of a task text on a GPU."""

    def run(forward: str, inputs: str = IMAGE, target: Target = "cuda:sm_90a", **options: str) -> Features:
        traced = trace(task_text(forward=forward, inputs=inputs, **options))
        return features_of(traced, target, "float32", PEAKS, False)

    return run


def _chain(features: Features) -> Chain:
    (chain,) = features.chains
    return chain


def _names(chain: Chain) -> list[str]:
    return [n.removeprefix("aten.") for n in chain.operators]


def test_a_convolution_takes_its_activation_along(features: FeaturesOf) -> None:
    f = features("y = self.f(x); return torch.tanh(y) * y", init="self.f = nn.Conv2d(4, 4, 3, padding=1)")
    chain = _chain(f)
    assert (_names(chain), chain.anchor) == (["convolution", "tanh", "mul"], "aten.convolution")
    assert chain.saved_bytes == 5 * 4 * 384  # the convolution's result: one write, two reads; that of tanh: both once
    assert chain.share == 1
    assert f.launches == f.depth == 3


def test_in_place_operators_form_chains_as_others_do(features: FeaturesOf) -> None:
    chain = _chain(features("y = x * 2; y.relu_(); y.add_(1); return y"))
    assert _names(chain) == ["mul", "relu_", "add_"]
    assert chain.saved_bytes == 4 * 4 * 384


def test_attention_by_hand_is_one_chain(features: FeaturesOf) -> None:
    f = features(
        "return ((q @ k.mT) * 0.2).softmax(-1) @ v", "[torch.rand(2, 1024, 16) for _ in range(3)]", args="q, k, v"
    )
    chain = _chain(f)
    assert (_names(chain), chain.anchor) == (["bmm", "mul", "_softmax", "bmm"], "aten.bmm, aten.bmm")
    assert chain.saved_bytes == 6 * 4 * 2 * 1024 * 1024


def test_halves_of_a_value_are_not_counted_as_the_whole(features: FeaturesOf) -> None:
    f = features("a, b = (x * 2).chunk(2, 1); return a * b")
    assert _chain(f).saved_bytes == 2 * 4 * 384  # written, and each half read once
    assert f.reuse == ()


REDUCTIONS = {
    # forward: extent, independent results, contiguous
    "x.sum(-1)": (8, 48, True),
    "x.sum((2, 3))": (48, 8, True),
    "x.mean(1)": (4, 96, False),
    "x.amax((1, 3))": (32, 12, False),
    "x.sum()": (384, 1, True),
    "x.mT.sum(-1)": (6, 64, False),
    "x.mT.sum((-1, -2))": (48, 8, True),
    "x.norm(dim=(0, 1))": (8, 48, False),
    "x.topk(3)[0]": (8, 48, True),
    "x.cumsum(-1)": (8, 48, True),
    "x.cumsum(1)": (4, 96, False),
    "x.softmax(-1)": (8, 48, True),
    "x.softmax(1)": (4, 96, False),
    "F.layer_norm(x, (6, 8))": (48, 8, True),
    "F.layer_norm(x.permute(0, 2, 3, 1), (4,))": (4, 96, False),
    "F.group_norm(x, 2)": (96, 4, True),
    "F.group_norm(x.contiguous(memory_format=torch.channels_last), 2)": (96, 4, False),
    "F.instance_norm(x)": (48, 8, True),
    "F.batch_norm(x, None, None, training=True)": (96, 4, False),
    "F.max_pool2d(x, 2)": (4, 96, False),
    "F.max_pool2d(x, 3, 1, 1)": (9, 384, False),
    "F.avg_pool2d(x, (6, 8))": (48, 8, False),
    "F.adaptive_avg_pool2d(x, 1)": (48, 8, True),
    "F.adaptive_avg_pool2d(x, 2)": (12, 32, False),
}


@pytest.mark.parametrize(("forward", "hand"), REDUCTIONS.items(), ids=list(REDUCTIONS))
def test_reductions_tell_length_number_and_layout(
    features: FeaturesOf, forward: str, hand: tuple[int, int, bool]
) -> None:
    (found,) = features(f"return {forward}").reductions
    assert (found.extent, found.results, found.contiguous) == hand
    assert found.count == 1


def test_equal_reductions_are_one_row(features: FeaturesOf) -> None:
    found = features("return x.sum(-1) + (x * 2).sum(-1)").reductions
    assert found == (Reduction(operator="aten.sum", count=2, extent=8, results=48, contiguous=True),)


def test_an_evaluated_batch_norm_reduces_nothing(features: FeaturesOf) -> None:
    assert features("return self.f(x)", init="self.f = nn.BatchNorm2d(4).eval()").reductions == ()


def _reuse(features: Features) -> dict[str, Reuse]:
    return {r.tensor: r for r in features.reuse}


def test_a_product_uses_each_element_as_often_as_its_flops_say(features: FeaturesOf) -> None:
    f = features("return self.f(x)", "[torch.rand(32, 16)]", init="self.f = nn.Linear(16, 8)")
    rows = _reuse(f)
    assert rows["inputs.x"] == Reuse(tensor="inputs.x", readers=1, nbytes=4 * 32 * 16, uses=2 * 8)
    assert rows["state.f.weight"].uses == 2 * 32
    assert "state.f.bias" not in rows


def test_a_depthwise_convolution_uses_its_input_little(features: FeaturesOf) -> None:
    f = features("return self.f(x)", init="self.f = nn.Conv2d(4, 4, 3, groups=4, padding=1)")
    assert _reuse(f)["inputs.x"].uses == 2 * 9
    assert "state.f.bias" not in _reuse(f)


def test_a_value_with_several_readers_is_named_by_who_makes_and_reads_it(features: FeaturesOf) -> None:
    rows = _reuse(features("y = x * 2; return y.exp(), y.relu()"))
    assert rows == {
        "aten.mul → aten.exp, aten.relu": Reuse(tensor="aten.mul → aten.exp, aten.relu", readers=2, nbytes=1536, uses=0)
    }


def test_a_value_that_one_operator_takes_twice_is_read_once(features: FeaturesOf) -> None:
    assert features("return x * x").reuse == ()


def test_the_largest_reuse_comes_first(features: FeaturesOf) -> None:
    f = features("return x.exp() + x, y.exp() + y", "[torch.rand(8), torch.rand(800)]", args="x, y")
    assert [r.tensor for r in f.reuse] == ["inputs.y", "inputs.x"]


LSTM = {
    "forward": "return self.f(x)[0].relu()",
    "inputs": "[torch.rand(5, 2, 8)]",
    "init": "self.f = nn.LSTM(8, 16, 2)",
}


def test_a_recurrent_layer_is_one_launch_on_a_gpu_and_many_on_a_processor(features: FeaturesOf) -> None:
    gpu = features(**LSTM)
    cpu = features(**LSTM, target="cpu")
    assert gpu.launches == 2  # the layers and the activation
    assert cpu.launches == sum(o.count for o in cpu.operators) > 2 * 5 * 4


def test_each_run_of_a_recurrent_layer_counts(features: FeaturesOf) -> None:
    f = features("h = self.f(x)[0]; return self.f(h.relu())[0]", "[torch.rand(5, 2, 8)]", init="self.f = nn.GRU(8, 8)")
    assert f.launches == 3


def test_a_class_that_is_only_called_like_a_recurrent_layer_is_none(features: FeaturesOf) -> None:
    head = "class LSTM(nn.Module):\n    def forward(self, x):\n        return x.relu().exp()"
    f = features("return self.f(x)", init="self.f = LSTM()", head=head)
    assert f.launches == 2
    assert f.uncovered_share == 1


def test_depth_counts_what_has_to_wait(features: FeaturesOf) -> None:
    assert features("return (x.exp() + x.relu()).tanh()").depth == 3
    assert features("return x.exp(), x.relu()").depth == 1


def test_work_that_is_thrown_away_is_in_no_chain_but_eager_execution_launches_it(features: FeaturesOf) -> None:
    f = features("y = x.relu(); y.mean().sqrt(); return y.exp()")
    assert _names(_chain(f)) == ["relu", "exp"]
    assert f.launches == 4
    mean = next(o.share for o in f.operators if o.name == "aten.mean")
    assert f.unused == ("aten.mean", "aten.sqrt")
    assert mean < f.unused_share < 0.5


def test_a_loss_that_picks_scores_keeps_only_those_on_chip(features: FeaturesOf) -> None:
    f = features(
        "return F.cross_entropy(x, t)", "[torch.rand(64, 100), torch.zeros(64, dtype=torch.int64)]", args="x, t"
    )
    read = 64 * (4 + 8)  # one score per row and its target: an operator reads no more of a value than it reads in all
    assert _chain(f).saved_bytes == 4 * 64 * 100 + read
