"""A contract as the agent sees it: pure builders."""

from hiera_mcp.contracts.bindings import interface_text
from hiera_mcp.model.contract import Case, Contract, Degeneracy, Features, Operator, Parameter, TensorSpec
from hiera_mcp.model.space import source_file
from hiera_mcp.tools.views import ContractView, FeaturesView, OperatorLine

TOP_OPERATORS = 6
MOST_PARAMETERS = 40
"""More parameters than this are counted, not listed; params_semantics.json has all of them."""


def contract_view(contract: Contract, files: list[str]) -> ContractView:
    """The contract in short, with the addresses of its files."""
    return ContractView(
        contract_id=contract.id,
        task=contract.task.name,
        target=contract.target,
        precision=contract.precision,
        spaces=contract.spaces,
        source_file=source_file(contract.target),
        interface=interface_text(contract),
        parameters=parameter_lines(contract.parameters),
        cases=tuple(case_line(case) for case in contract.cases),
        features=features_view(contract.features),
        floor=contract.floor,
        tolerance=contract.tolerance,
        degeneracy=degeneracy_line(contract.degeneracy),
        notes=contract.notes,
        files={name: f"hiera://contracts/{contract.id}/files/{name}" for name in files},
    )


def parameter_lines(parameters: tuple[Parameter, ...]) -> tuple[str, ...]:
    lines = [f"{_tensor(p)} {p.role}: {p.layout}" for p in parameters[:MOST_PARAMETERS]]
    rest = len(parameters) - len(lines)
    return (*lines, f"… and {rest} more, see params_semantics.json") if rest else tuple(lines)


def case_line(case: Case) -> str:
    inputs = ", ".join(_tensor(t) for t in case.inputs)
    scalars = "".join(f", {s.name}={s.value}" for s in case.scalars)
    return f"{case.name}: {inputs}{scalars} -> {', '.join(_tensor(t) for t in case.outputs)}"


def features_view(features: Features) -> FeaturesView:
    top = sorted(features.operators, key=lambda o: -o.share)[:TOP_OPERATORS]
    shared = set(FeaturesView.model_fields) - {"operators"}
    return FeaturesView(operators=tuple(_operator(o) for o in top), **{f: getattr(features, f) for f in shared})


def degeneracy_line(d: Degeneracy) -> str:
    if not d.measured:
        return f"not measured: {d.reason}"
    would = {
        "zeros": d.zeros_pass,
        "a constant": d.constant_passes,
        "the input itself": d.input_echo_passes,
        "the output for other inputs": d.other_inputs_pass,
    }
    passing = [what for what, passes in would.items() if passes]
    if not passing:
        return "none: zeros, a constant, the input and the output for other inputs are all told from the right answer"
    return f"degenerate: {', '.join(passing)} would pass; verification uses inputs under which that is not so"


def _tensor(t: TensorSpec) -> str:
    return f"{t.name}: {t.dtype}[{', '.join(map(str, t.shape))}]"


def _operator(o: Operator) -> OperatorLine:
    return OperatorLine(name=o.name, kind=o.kind, count=o.count, flops=o.flops, bytes=o.bytes, share=o.share)
