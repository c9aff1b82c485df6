"""Tensors from which forward() computes a weight: weight norm, spectral norm, parametrisations of the task's own."""

import re
from collections.abc import Callable, Mapping

from hiera_mcp.contracts.parameter_rules import Rule
from hiera_mcp.contracts.readings import State
from hiera_mcp.model.work import TracedParameter

_NEW = re.compile(r"(?P<list>(?:.*\.)?parametrizations\.(?P<name>[^.]+))\.(?:0\.)?(?P<leaf>original\d*|_u|_v)")
"""torch.nn.utils.parametrizations and parametrize."""
_OLD = re.compile(r"(?P<stem>.+)_(?P<leaf>g|v|orig|u)")
"""torch.nn.utils.weight_norm and spectral_norm."""

Maker = Callable[[TracedParameter, str], Rule]


def parametrised_rule(p: TracedParameter, state: State) -> Rule | None:
    """The meaning of a tensor from which a weight is computed; None: it is no such tensor."""
    if new := _NEW.fullmatch(p.path):
        types = {m.path: m.type for m in state.trace.modules}
        maker = _RULES.get((types.get(f"{new['list']}.0", ""), new["leaf"]), _own)
        return maker(p, new["name"])
    if old := _OLD.fullmatch(p.path):
        paths = {q.path for q in state.trace.parameters}
        kind = next((k for k, leaves in _OLD_KINDS.items() if {f"{old['stem']}_{x}" for x in leaves} <= paths), None)
        leaf = _OLD_KINDS[kind].get(old["leaf"]) if kind else None
        return _RULES[kind, leaf](p, old["stem"].rpartition(".")[2]) if kind and leaf else None
    return None


_OLD_KINDS: Mapping[str, Mapping[str, str]] = {
    "_WeightNorm": {"g": "original0", "v": "original1"},
    "_SpectralNorm": {"orig": "original", "u": "_u", "v": "_v"},
}


def _weight_norm(which: str) -> Maker:
    def rule(p: TracedParameter, name: str) -> Rule:
        return Rule(
            f"{which} of a weight norm",
            f"{list(p.shape)}: {name} = g · v / ‖v‖, with g the magnitude, v the direction, and the norm over all dimensions "
            "in which g has one element",
            (),
            f"{name} itself, which is a function of g and v alone, and what may be made of it",
        )

    return rule


_POWER_ITERATION = (
    "in train mode u and v take a step of the power iteration first: v = normalise(originalᵀ u), then "
    "u = normalise(original v)"
)


def _spectral_norm(role: str, what: str) -> Maker:
    def rule(p: TracedParameter, name: str) -> Rule:
        return Rule(
            role,
            f"{list(p.shape)}, {what}: {name} = original / σ with σ = uᵀ · original · v, `original` as a matrix of its first "
            "dimension by the rest",
            (_POWER_ITERATION,),
            f"{name} itself, which is a function of original, u and v alone, and what may be made of it",
        )

    return rule


def _own(p: TracedParameter, name: str) -> Rule:
    layout = f"{list(p.shape)}: forward() computes {name} from it by a parametrisation of the task's own"
    return Rule("weight before its parametrisation", layout, (), f"{name} itself, where it depends on parameters alone")


_RULES: Mapping[tuple[str, str], Maker] = {
    ("_WeightNorm", "original0"): _weight_norm("magnitude g"),
    ("_WeightNorm", "original1"): _weight_norm("direction v"),
    ("_SpectralNorm", "original"): _spectral_norm("weight before its spectral norm", "original"),
    ("_SpectralNorm", "_u"): _spectral_norm("left singular vector", "u"),
    ("_SpectralNorm", "_v"): _spectral_norm("right singular vector", "v"),
}
