"""A contract in lines of text, for people and agents: pure functions, nothing is left out here."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from hiera_mcp.contracts.floor import duration, quantity
from hiera_mcp.model.contract import (
    Case,
    Chain,
    Contract,
    Coverage,
    Degeneracy,
    Floor,
    Operator,
    Parameter,
    Reduction,
    Reuse,
    Scalar,
    TensorSpec,
    Tolerance,
)

_NUMBER = re.compile(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])")
"""A number that is a whole part of a path: the 3 of `layers.3.weight`, not that of `conv3.weight`."""
_DIGITS = re.compile(r"\d+")


MOST_PATTERNS = 6
"""Paths in the line of one meaning; the list of all parameters has each."""


def tensor(t: TensorSpec) -> str:
    """`x: float32[16, 256]`."""
    return f"{t.name}: {t.dtype}[{', '.join(map(str, t.shape))}]"


def case_line(case: Case) -> str:
    """Inputs, scalars and outputs of one case."""
    inputs = ", ".join([*map(tensor, case.inputs), *(f"{s.name}={s.value!r}" for s in case.scalars)])
    return f"{case.name}: {inputs} -> {', '.join(map(tensor, case.outputs))}"


def parameter_line(p: Parameter) -> str:
    """One parameter: what it is, who reads it, what may be derived from it."""
    path = f" ({p.path})" if p.path != p.name else ""
    strides = f", strides {list(p.strides)}" if p.strides else ""
    return f"{tensor(p)}{strides}{path} {_meaning(p)}; of {p.consumed_by}" + _readers(p)


def _readers(p: Parameter) -> str:
    told = [f"read by {', '.join(p.read_by)}"] if p.read_by else []
    told += [f"also {', '.join(p.aliases)}"] if p.aliases else []
    return "".join(f"; {text}" for text in told)


def _meaning(p: Parameter) -> str:
    told = [f"{p.role}: {p.layout}", *p.constraints]
    told += [f"may prepare {p.may_precompute}"] if p.may_precompute else []
    told += [f"not {p.must_not_precompute}"] if p.must_not_precompute else []
    return "; ".join(told)


def parameter_groups(parameters: Sequence[Parameter], where: str) -> tuple[str, ...]:
    """One line for all parameters of the same meaning; paths that differ in numbers only are one: `layers.*.bias ×98`.

    `where` all of them are listed is said when there are many paths.
    """
    groups: dict[tuple[str, ...], list[Parameter]] = {}
    for p in parameters:  # not by layout, where the numbers of a shape may stand
        told = (*p.constraints, p.may_precompute, p.must_not_precompute)
        groups.setdefault((p.dtype, p.role, *(_DIGITS.sub("*", text) for text in told)), []).append(p)
    return tuple(_group_line(group, where) for group in groups.values())


def _group_line(group: Sequence[Parameter], where: str) -> str:
    first = group[0]
    same = len({p.layout for p in group}) == 1
    meaning = _in_common([_meaning(p if same else p.model_copy(update={"layout": "layouts differ"})) for p in group])
    if len(group) == 1:
        return f"{tensor(first)} {meaning}"
    patterns: dict[str, list[Parameter]] = {}
    for p in group:
        patterns.setdefault(_NUMBER.sub("*", p.path), []).append(p)
    named = [_pattern(pattern, of) for pattern, of in patterns.items()]
    rest = f" and {len(named) - MOST_PATTERNS} more patterns ({where})" if len(named) > MOST_PATTERNS else ""
    return f"{first.dtype} {meaning}. Of: {', '.join(named[:MOST_PATTERNS])}{rest}"


def _in_common(texts: Sequence[str]) -> str:
    """Texts that differ in numbers only, as one: `stride *` where the numbers differ."""
    columns = zip(*(_DIGITS.findall(t) for t in texts), strict=True)
    same = iter([len(set(column)) == 1 for column in columns])
    return _DIGITS.sub(lambda number: number[0] if next(same) else "*", texts[0])


def _pattern(pattern: str, of: Sequence[Parameter]) -> str:
    """`layers.*.weight ×98 [64..1920]`, or the field of the only one."""
    name = of[0].name if len(of) == 1 else f"{pattern} ×{len(of)}"
    return f"{name} {shapes([p.shape for p in of])}"


def shapes(of: Sequence[tuple[int, ...]]) -> str:
    """`[64..1920, 3, 3]`: what several shapes have in common."""
    if len({len(shape) for shape in of}) != 1:
        return " of several ranks"
    return f"[{', '.join(_span(sizes) for sizes in zip(*of, strict=True))}]"


def _span(sizes: Iterable[int]) -> str:
    found = sorted(set(sizes))
    return str(found[0]) if len(found) == 1 else f"{found[0]}..{found[-1]}"


def operator_line(o: Operator) -> str:
    return f"{o.name} ({o.kind}) ×{o.count}: {_percent(o.share)} of time, {_work(o.flops)}{quantity(o.bytes, 'B')}"


def _work(flops: float) -> str:
    return f"{quantity(flops, 'FLOP')}, " if flops else ""


def chain_line(c: Chain) -> str:
    times = f" ×{c.count}" if c.count > 1 else ""
    anchor = f" on {c.anchor}" if c.anchor else ""
    names = " → ".join(f"{n} ×{m}" if m > 1 else n for n, m in _runs(c.operators))
    return f"{names}{anchor}{times}: saves {quantity(c.saved_bytes, 'B')}, {_percent(c.share)} of time"


def _runs(names: Iterable[str]) -> list[tuple[str, int]]:
    return [(name, len(list(run))) for name, run in groupby(names)]


def reduction_line(r: Reduction) -> str:
    how = "contiguous" if r.contiguous else "strided"
    return f"{r.operator} ×{r.count}: {r.extent} elements into each of {r.results} results, {how}"


def reuse_line(r: Reuse) -> str:
    uses = f", {r.uses:.3g} operations per element" if r.uses else ""
    return f"{r.tensor}: {quantity(r.nbytes, 'B')}, read by {r.readers}{uses}"


def library_line(c: Coverage) -> str:
    return f"{c.library} ({_percent(c.share)} of time): {', '.join(c.operators)}; {c.how}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.01 or not share else "< 1 %"


def floors_text(floors: Sequence[Floor]) -> str:
    """`A100 1.2 ms (memory), H100 0.8 ms (math)`."""
    return ", ".join(f"{f.device or 'unnamed'} {duration(f.seconds)} ({f.bound})" for f in floors)


def tolerance_text(t: Tolerance) -> str:
    """When an output is right, in words."""
    if t.comparison:
        return f"the reference file's function {t.comparison} decides whether an output is right"
    tf32 = "TF32 is allowed" if t.allow_tf32 else "TF32 is not allowed"
    given = ", figures given by the user" if t.source == "given" else ""
    return (
        f"each element within {t.atol:g}·rms(oracle) + {t.rtol:g}·|oracle| of the reference in float64, never held to "
        f"less than {t.reference_factor:g} times the reference's own error; a row or channel much smaller than the whole "
        f"counts by its own rms; integers, booleans and infinities equal{given}; {tf32}"
    )


def degeneracy_text(d: Degeneracy) -> str:
    """Whether a trivial output would pass, and what follows from it."""
    if d.unverifiable:
        return (
            f"unverifiable: {_passing(d)}, and no other inputs were found that tell. Candidates are not judged{_why(d)}"
        )
    if not d.measured:
        return f"not measured{_why(d)}"
    where = f" (measured with {d.sizes})" if d.sizes else ""
    if not d.degenerate:
        told = "none: zeros, a constant, the input and the output for other inputs are all told from the right answer"
        return told + where + _why(d)
    how = f"by the trials {d.remedy}" if d.remedy else "by further inputs and parameters"
    return f"degenerate: {_passing(d)} on the task's own inputs{where}; verification tells them apart {how}{_why(d)}"


def _passing(d: Degeneracy) -> str:
    would = {
        "zeros": d.zeros_pass,
        "a constant": d.constant_passes,
        "the input itself": d.input_echo_passes,
        "the output for other inputs": d.other_inputs_pass,
    }
    return f"{', '.join(what for what, passes in would.items() if passes) or 'a trivial output'} would pass"


def _why(d: Degeneracy) -> str:
    return f": {d.reason}" if d.reason else ""


def handling_lines(case: Case) -> tuple[str, ...]:
    """How scalars and random numbers reach the candidate."""
    return (*map(_scalar, case.scalars), *([_draws(case)] if case.draws else []))


def _draws(case: Case) -> str:
    return (
        f"{', '.join(case.draws)}: random numbers that forward() draws. The judge draws them and gives reference and "
        "candidate the same; a ModelNew takes them after its other arguments."
    )


def _scalar(scalar: Scalar) -> str:
    if scalar.value is None:
        return f"scalar {scalar.name} is None: HIERA_SCALAR_{scalar.name}_IS_NONE"
    return f"scalar {scalar.name} = {scalar.value!r}: the constant HIERA_SCALAR_{scalar.name}"


LISTS: dict[str, Callable[[Contract], tuple[str, ...]]] = {
    "parameters": lambda c: tuple(map(parameter_line, c.parameters)),
    "cases": lambda c: tuple(map(case_line, c.cases)),
    "handling": lambda c: handling_lines(c.cases[0]),
    "operators": lambda c: tuple(map(operator_line, sorted(c.features.operators, key=lambda o: -o.share))),
    "chains": lambda c: tuple(map(chain_line, c.features.chains)),
    "reductions": lambda c: tuple(map(reduction_line, c.features.reductions)),
    "reuse": lambda c: tuple(map(reuse_line, c.features.reuse)),
    "libraries": lambda c: tuple(map(library_line, c.features.libraries)),
    "notes": lambda c: c.notes,
}
"""What a contract lists → all its lines, the most wanted first."""
