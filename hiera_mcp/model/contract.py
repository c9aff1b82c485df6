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
    must_not_precompute: str = ""
    """What looks derivable and is not, with the reason, for example folding a batch norm in train mode."""
    strides: tuple[int, ...] = ()
    """In elements, of the dense tensor that candidates get: what to multiply each index with."""
    read_by: tuple[str, ...] = ()
    """Operators that read it, with the argument that it fills: `aten.addmm as mat2 (transposed)`. Empty: none does."""
    aliases: tuple[str, ...] = ()
    """Further paths of the same tensor in the reference (tied weights)."""


class Case(Model):
    """One set of shapes. Each case of a contract is compiled and verified by itself."""

    name: Identifier
    inputs: tuple[TensorSpec, ...]
    scalars: tuple[Scalar, ...] = ()
    outputs: tuple[TensorSpec, ...] = Field(min_length=1)
    forward_order: tuple[str, ...]
    """Names of inputs and scalars in the order of the reference's forward()."""
    draws: tuple[str, ...] = ()
    """Inputs that stand for random numbers which the reference's forward() draws, in its order: the judge draws them and
    gives the same ones to reference and candidate. A ModelNew takes them after the other arguments of forward()."""


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
    source: Literal["default", "given"] = "default"
    """default: the rule for the precision; given: the user's own figures."""
    comparison: str = ""
    """Name of a function of the reference file that decides instead of the rule (docs/verification.md); empty: the rule."""


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


class Chain(Model):
    """Operators that can become one kernel: the results of all but the last are read inside of it alone."""

    operators: tuple[Text, ...]
    """In order; a long chain is cut, and its last entry says how many more there are."""
    anchor: str = ""
    """The contraction whose epilogue or prologue the rest is; two where the second can take the result of the first tile by
    tile (`aten.bmm, aten.bmm` in attention); empty: all of them are bound by memory."""
    length: int
    """Operators in it."""
    count: int = 1
    """How often the same chain occurs."""
    crosses: int = 0
    """Elements of the longest reduction in it, whose operands stay on chip or are read twice; 0 without one."""
    saved_bytes: float
    """Traffic that one kernel does without, over all occurrences: results in between, and what several of its operators
    read."""
    share: float
    """Of the reference's estimated time that its operators take, over all occurrences. Between 0 and 1."""


class Reduction(Model):
    """Operators that reduce: sums, norms, softmax, pooling, scans."""

    operator: Text
    count: int
    extent: int
    """Elements that go into one result."""
    results: int
    """Independent results: the parallelism across reductions."""
    contiguous: bool
    """Whether the reduced elements lie next to each other in memory."""


class Reuse(Model):
    """A tensor that the reference reads more than once from memory, or that a contraction uses many times."""

    tensor: Text
    """`inputs.x`, `state.fc.weight`; or `aten.mm → aten.add` for a result in between."""
    readers: int
    """Operators that read it."""
    nbytes: int
    uses: float
    """Arithmetic operations per element of it, by the contractions that read it; 0 without one."""


class Coverage(Model):
    """A library that would serve some of the operators."""

    library: Text
    """By the name that the host's search for libraries reports: cublas, cublasLt, cudnn, cccl, cufft, blas, onednn, …"""
    operators: tuple[Text, ...]
    share: float
    """Of the reference's estimated time. Between 0 and 1."""
    how: Text
    """Which routine, and what it takes along (bias, activation)."""


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
    depth: int = 0
    """Operators on the longest path of dependent ones."""
    chains: tuple[Chain, ...] = ()
    """The ones that save most come first."""
    reductions: tuple[Reduction, ...] = ()
    reuse: tuple[Reuse, ...] = ()
    libraries: tuple[Coverage, ...] = ()
    uncovered_share: float = 1.0
    """Share of the estimated time in operators that no library serves."""
    unused: tuple[Text, ...] = ()
    """Operators whose result no output depends on, each once: eager execution runs them, a candidate may leave them out."""
    unused_share: float = 0.0
    """Share of the estimated time in such calls."""


class Floor(Model):
    """The least time that one call can take on the target (speed of light), with its arithmetic."""

    device: str = ""
    """The GPU's name as in the hardware tables, or `cpu`."""
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
    """One value for all elements, or for all along a dimension."""
    input_echo_passes: bool | None = None
    other_inputs_pass: bool | None = None
    """Whether the output for other inputs would pass, that is, whether the output hardly depends on the input."""
    sizes: str = ""
    """On which sizes it was measured, when on smaller ones than the task's: `batch 4096 → 2`."""
    remedy: str = ""
    """The inputs and parameters under which none of them passes, which verification uses; empty: none needed or none
    found."""
    unverifiable: bool = False
    """No inputs and parameters were found that tell a trivial output from the right one; candidates are not judged."""

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
    floors: tuple[Floor, ...] = ()
    """On each device that a hardware table describes, for comparison."""
    degeneracy: Degeneracy
    notes: tuple[str, ...] = ()
    """Stated rules and warnings, for example how randomness or train mode is treated."""

    @property
    def id(self) -> str:
        """Content address; measured values (floor, degeneracy) do not change the identity of the specification."""
        spec = self.model_dump(mode="json", exclude={"floor", "floors", "degeneracy", "features"})
        return "c_" + digest(spec)

    @property
    def spaces(self) -> tuple[Space, Space, Space]:
        return spaces_of(self.target)
