"""Is a strategy inside the decided space and direction, and legal on the target?"""

import re
from collections.abc import Iterable

from hiera_mcp.errors import GateError, RequestError
from hiera_mcp.model.plan import Strategy
from hiera_mcp.model.space import Space, Target, architecture
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.limits import too_large
from hiera_mcp.planning.predictions import FORMS, GOOD, expectation

SM_90 = r"sm_(9\d|1\d\d)[af]?"

INSTRUCTIONS: tuple[tuple[str, str, str], ...] = (
    (r"\bwgmma\b", r"sm_90a", "wgmma needs sm_90a"),
    (r"\bsetmaxnreg\b", r"sm_(90|1\d\d)a", "setmaxnreg needs sm_90a or a later `a` target"),
    (r"\btcgen05\b", r"sm_1[01]\da", "tcgen05 needs sm_100a"),
    (r"\bTMA\b|cp\.async\.bulk|\bstmatrix\b|\bgriddepcontrol\b", SM_90, "TMA, stmatrix and griddepcontrol need sm_90"),
    (r"__cluster_dims__|\bdistributed shared memory\b|barrier\.cluster", SM_90, "clusters need sm_90"),
    (r"\bcp\.async\b|\bldmatrix\b|\bmma\.sync\b", r"sm_([89]\d|1\d\d)[af]?", "needs sm_80"),
    (r"__shared__|\b__shfl|\bcudaStream|\bcuda(Malloc|Graph)", r"sm_\d+[af]?", "CUDA constructs do not exist on cpu"),
)
"""Word in a strategy → architectures on which it exists (checked with ptxas 13.0; PTX ISA manual) → what to say."""

LIBRARY_WORDS = re.compile(
    r"\b(cublas\w*|cudnn\w*|cufft\w*|cusparse\w*|cub::\w+|thrust::\w+|cblas_\w+|onednn)\b", re.IGNORECASE
)
PYTORCH_WORDS = re.compile(r"\b(torch\.\w+|model_new\.py)", re.IGNORECASE)


def validate_strategy(strategy: Strategy, evidence: Evidence) -> None:
    """Raises RequestError (outside the decision, or no prediction that can be checked) or GateError (not legal)."""
    _inside_decisions(strategy, evidence)
    _unpredictable(strategy, evidence)
    problem = illegal_words(_text(strategy), strategy.space, evidence.target) or too_large(
        strategy.parameters, evidence
    )
    if problem is not None:
        raise GateError(problem, todo="Change the step or the number; name what is to be avoided under `constraints`.")


def illegal_words(text: str, space: Space, target: Target) -> str | None:
    """What in the text lies outside the space or does not exist on the target, with its gate; None when nothing does."""
    if not space.allows_libraries and (found := LIBRARY_WORDS.search(text)):
        return f"strategy_space: {found[0]} is a library, and {space} allows none."
    if not space.allows_pytorch and (found := PYTORCH_WORDS.search(text)):
        return f"strategy_space: {found[0]} is PyTorch, and {space} does not allow it."
    arch = architecture(target) or "cpu"
    for word, archs, why in INSTRUCTIONS:
        if (found := re.search(word, text)) and not re.fullmatch(archs, arch):
            return f"strategy_target: {found[0]} is not legal on {target}: {why}."
    return None


def decided_space(evidence: Evidence) -> Space:
    """The space that a strategy is for. Raises RequestError before space and, unless the run has none, direction are decided."""
    if evidence.space is None or (evidence.direction is None and evidence.switches.directions):
        raise RequestError(
            "A strategy needs a space and a direction.", todo="Call hiera_plan_space and hiera_plan_direction first."
        )
    return evidence.space


def _inside_decisions(strategy: Strategy, evidence: Evidence) -> None:
    space = decided_space(evidence)
    if strategy.space is not space:
        raise RequestError(f"The strategy is for {strategy.space}, the run decided otherwise.", valid=[space])
    if strategy.direction is not evidence.direction:
        valid = [evidence.direction or "null, since this run decides no direction"]
        raise RequestError(f"The strategy is for {strategy.direction}, the run decided otherwise.", valid=valid)


def _unpredictable(strategy: Strategy, evidence: Evidence) -> None:
    """Refuse a prediction that nothing could ever confirm or refute."""
    metric, change = strategy.predicted_metric, strategy.predicted_change
    measured = [m.name for m in evidence.profile.metrics] if evidence.profile else []
    if not metric or (metric in GOOD and not change):
        return
    if metric not in GOOD and not {metric, f"ncu_{metric}"} & set(measured):
        raise RequestError(f"predicted_metric: nothing measures {metric!r} here.", valid=[*GOOD, *measured])
    if expectation(change, metric) is None:
        raise RequestError(f"predicted_change: {change!r} does not begin with a change.", todo=f"Say {FORMS}.")


def _text(strategy: Strategy) -> str:
    """What will be done. Constraints are left out: they name things in order to forbid them."""
    return "\n".join(_strings([strategy.title, *strategy.steps, *strategy.parameters.values()]))


def _strings(values: Iterable[object]) -> Iterable[str]:
    return (str(value) for value in values)
