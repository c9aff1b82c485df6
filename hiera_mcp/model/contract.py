"""The contract: the specification of one task on one target. Immutable and content-addressed (design §4)."""

from typing import Literal

from pydantic import Field

from hiera_mcp.model.base import Identifier, Model, Text, digest
from hiera_mcp.model.space import Space, Target, spaces_of

DType = Literal["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
"""Element types as PyTorch names them."""

Precision = Literal["float64", "float32", "float16", "bfloat16"]

OperatorKind = Literal[
    "gemm", "conv", "attention", "reduction", "normalisation", "elementwise", "movement", "scan", "other"
]

ITEM_BYTES: dict[DType, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}


class TensorSpec(Model):
    """One dense, contiguous (C order) tensor of the interface."""

    name: Identifier
    """Its field name in the C struct."""
    shape: tuple[int, ...]
    dtype: DType

    @property
    def numel(self) -> int:
        n = 1
        for d in self.shape:
            n *= d
        return n

    @property
    def nbytes(self) -> int:
        return self.numel * ITEM_BYTES[self.dtype]


class Scalar(Model):
    """A forward argument that is not a tensor; a compile-time constant in contract.h."""

    name: Identifier
    value: int | float | bool | str | None


class Parameter(TensorSpec):
    """A parameter or buffer of the reference, handed to the candidate and never re-drawn."""

    path: Text
    """Its name in the module's state, for example `layers.0.weight`."""
    role: Text
    """weight, bias, running_mean, running_var, affine weight, buffer, …"""
    layout: Text
    """What each dimension means, in words: `[out_features, in_features], row-major`."""
    consumed_by: Text
    """The module that uses it, for example `Linear fc1(256 → 128)`."""
    constraints: tuple[str, ...] = ()
    """For example: `values are variances, not negative`."""
    may_precompute: str = ""
    """What hiera_prepare may derive from it, for example a transposed copy."""


class Case(Model):
    """One set of shapes. Each case of a contract is compiled and verified by itself."""

    name: Identifier
    inputs: tuple[TensorSpec, ...]
    scalars: tuple[Scalar, ...] = ()
    outputs: tuple[TensorSpec, ...] = Field(min_length=1)
    forward_order: tuple[str, ...]
    """Names of inputs and scalars in the order of the reference's forward()."""


class Tolerance(Model):
    """When is an output right? See docs/verification.md for the rule and its reasons."""

    rtol: float
    """Relative part of the limit, on |oracle|."""
    atol: float
    """Part of the limit that scales with the root mean square of the oracle's output."""
    reference_factor: float
    """The limit is never below this multiple of the reference's own error against the float64 oracle."""
    allow_tf32: bool
    """Whether TF32 arithmetic is legal for float32 data. The eager baseline runs with the same setting."""


class Operator(Model):
    """One operator of the traced reference."""

    name: Text
    """PyTorch's name, for example `aten.addmm`."""
    kind: OperatorKind
    count: int
    """How many calls of it there are."""
    flops: float
    bytes: float
    """Compulsory traffic: each input read once, each output written once."""
    share: float
    """Estimated share of the reference's time, from bytes and FLOPs at the target's peaks. Between 0 and 1."""


class Features(Model):
    """What the planner wants to know about a workload. Sums over the first case."""

    operators: tuple[Operator, ...]
    flops: float
    compulsory_bytes: float
    """Inputs, parameters and outputs, each moved once: what a fully fused kernel must move."""
    unfused_bytes: float
    """Sum over operators of their own compulsory bytes: what eager execution moves."""
    arithmetic_intensity: float
    """flops / compulsory_bytes, in FLOP per byte."""
    launches: int
    """Operators that launch at least one kernel in eager mode."""
    parameter_bytes: int
    tensor_core_legal: bool
    """Whether Tensor Cores may be used under the contract's precision, and some operator could use them."""
    tensor_core_reason: str


class Floor(Model):
    """The least time that one call can take on the target (speed of light), with its arithmetic."""

    seconds: float
    bound: Literal["memory", "math"]
    memory_seconds: float
    math_seconds: float
    bandwidth: float
    """Bytes per second that the floor assumes."""
    peak_flops: float
    """FLOP per second of the fastest legal unit."""
    basis: Text
    """Where bandwidth and peak come from: a table row, or measured on this host."""
    arithmetic: Text
    """The computation in one line."""


class Degeneracy(Model):
    """Would a trivial output pass? From a run of the reference on drawn inputs."""

    measured: bool
    reason: str = ""
    """Why it was not measured, when it was not; else what else the runs showed (state between calls, infinities)."""
    zeros_pass: bool | None = None
    constant_passes: bool | None = None
    input_echo_passes: bool | None = None
    other_inputs_pass: bool | None = None
    """Whether the output for other inputs would pass, that is, whether the output hardly depends on the input."""

    @property
    def degenerate(self) -> bool:
        return any((self.zeros_pass, self.constant_passes, self.input_echo_passes, self.other_inputs_pass))


class Task(Model):
    """A reference to optimise, in KernelBench format."""

    name: Text
    source: Text
    """The text of the reference file: `Model`, `get_inputs`, `get_init_inputs`."""

    @property
    def id(self) -> str:
        return "t_" + digest({"name": self.name, "source": self.source})


class Contract(Model):
    """Contract-augmented specification of a task on a target."""

    task: Task
    target: Target
    precision: Precision
    parameters: tuple[Parameter, ...]
    cases: tuple[Case, ...] = Field(min_length=1)
    tolerance: Tolerance
    features: Features
    floor: Floor
    degeneracy: Degeneracy
    notes: tuple[str, ...] = ()
    """Stated rules and warnings, for example how randomness or train mode is treated."""

    @property
    def id(self) -> str:
        """Content address; measured values (floor, degeneracy) do not change the identity of the specification."""
        spec = self.model_dump(mode="json", exclude={"floor", "degeneracy", "features"})
        return "c_" + digest(spec)

    @property
    def spaces(self) -> tuple[Space, Space, Space]:
        return spaces_of(self.target)
