"""A contract in each precision, through the builder and the judge: right arithmetic passes, too little of it does not."""

from typing import Any

import pytest

from hiera_mcp.contracts.adapter import adapt
from hiera_mcp.model.contract import Precision

FUNCTION = "import torch\ndef layer(x, w, *, slope=0.1):\n    return torch.nn.functional.leaky_relu(x @ w, slope)\n"
INPUTS = ["x: float32[32, 2048], w: float32[2048, 16]"]
TYPES: dict[Precision, str] = {"float16": "_Float16", "bfloat16": "bf16", "float32": "float", "float64": "double"}
LAYER = """
#include "contract.h"
#include <cstring>
struct bf16 { unsigned short bits; };
using element = @element;
template <class T> T widened(T value) { return value; }
float widened(bf16 value) {
    unsigned bits = static_cast<unsigned>(value.bits) << 16;
    float wide;
    std::memcpy(&wide, &bits, 4);
    return wide;
}
template <class T> T narrowed(double value) { return static_cast<T>(value); }
template <> bf16 narrowed<bf16>(double value) {
    float wide = static_cast<float>(value);
    unsigned bits;
    std::memcpy(&bits, &wide, 4);
    return {static_cast<unsigned short>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params*, const hiera_outputs* o, void*) {
    const element* x = reinterpret_cast<const element*>(in->x);
    const element* w = reinterpret_cast<const element*>(in->w);
    element* out = reinterpret_cast<element*>(o->out);
    for (int r = 0; r < HIERA_DIM_x_0; ++r)
        for (int c = 0; c < HIERA_DIM_w_1; ++c) {
            @sum sum = 0;
            for (int k = 0; k < HIERA_DIM_x_1; ++k)
                sum = static_cast<@sum>(sum + static_cast<@sum>(widened(x[r * HIERA_DIM_x_1 + k])) * static_cast<@sum>(widened(w[k * HIERA_DIM_w_1 + c])));
            double value = sum;
            out[r * HIERA_DIM_w_1 + c] = narrowed<element>(value > 0 ? value : HIERA_SCALAR_slope * value);
        }
    return 0;
}
"""


def layer(precision: Precision, accumulator: str) -> str:
    return LAYER.replace("@element", TYPES[precision]).replace("@sum", accumulator)


@pytest.mark.alone
@pytest.mark.parametrize(
    ("precision", "enough"), [("float16", "float"), ("bfloat16", "float"), ("float32", "float"), ("float64", "double")]
)
def test_the_usual_accumulator_is_enough(workshop: Any, precision: Precision, enough: str) -> None:
    contract = workshop.contract(adapt(FUNCTION, "layer", INPUTS), precision)
    assert contract.cases[0].outputs[0].dtype == precision
    seen = workshop.evaluate(contract, layer(precision, enough))
    assert seen.status == "passed", seen.reason


@pytest.mark.parametrize(("precision", "short"), [("float16", "_Float16"), ("float64", "float")])
def test_too_short_an_accumulator_is_wrong(workshop: Any, precision: Precision, short: str) -> None:
    contract = workshop.contract(adapt(FUNCTION, "layer", INPUTS), precision)
    seen = workshop.evaluate(contract, layer(precision, short))
    assert seen.status == "wrong_output", seen.reason
