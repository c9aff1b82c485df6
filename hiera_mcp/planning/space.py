"""SSDA, first half: which of the three nested implementation spaces pays. One function per criterion of space.yaml.

Score 4 means that the space loses nothing on that criterion; the thresholds are the anchors of the rubric.
"""

from collections.abc import Mapping
from types import MappingProxyType

from hiera_mcp.model.plan import OptionScore
from hiera_mcp.model.space import Space
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.gates import space_gates
from hiera_mcp.planning.history import record_of_space
from hiera_mcp.planning.memory import answer_of, situation_of, space_priors
from hiera_mcp.planning.rubrics import Rubric, load_rubric
from hiera_mcp.planning.scoring import Answer, Missing, Scorer, View, apply, grade

SpaceView = View[Space]

FAR_BELOW_THE_RIDGE = 0.25
"""Ratio of arithmetic intensity to the ridge."""
LITTLE_TO_FUSE = 0.1
"""Share of the time in operators that can be fused with others."""
EAGER_CALL_SECONDS = 5e-6
"""Assumed host cost of one eager operator; not measured, and only its order of magnitude matters here."""
LEFT_BETWEEN_CALLS = (0.0, 0.5, 0.75)
"""Part of the loss by traffic and launches between operators that a space keeps. The spaces are nested: own kernels fuse what
lies between the calls in each of them. Library calls take a bias or an activation along, PyTorch's mostly do not."""


def score_spaces(evidence: Evidence, rubric: Rubric | None = None) -> tuple[OptionScore, ...]:
    """The three spaces of the target, the smallest first, scored and gated."""
    rubric = rubric or load_rubric("space")
    return tuple(
        apply(rubric, SPACE_CRITERIA, evidence, space).model_copy(update={"gates": space_gates(evidence, space)})
        for space in evidence.spaces
    )


def contraction_coverage(view: SpaceView) -> Answer:
    share = view.number("contraction_share")
    level = _level(view)
    if _streams(view):
        return Answer(
            4, f"{share:.0%} of the time is in contractions, but far below the ridge: bandwidth decides, not a library."
        )
    if not _tuned(view):
        missing = ", and no installed library covers them" if level == 1 else ""
        return Answer(
            4 - grade(share, (0.05, 0.2, 0.5, 0.8)),
            f"{share:.0%} of the reference's time is in contractions, here written by hand{missing}.",
        )
    by = "library calls" if level == 1 else "PyTorch's own kernels"
    return Answer(4, f"{share:.0%} of the reference's time is in contractions; here they are served by {by}.")


def fusion_gain(view: SpaceView) -> Answer:
    ratio = view.number("fusion_ratio")
    share = _fusable(view)
    if share < LITTLE_TO_FUSE:
        return Answer(4, f"{share:.0%} of the time is in operators that can be fused: bytes between the others remain.")
    loss = grade(ratio, (1.2, 1.5, 2, 3)) * LEFT_BETWEEN_CALLS[_level(view)]
    kept = (
        "can all be fused away",
        "partly remain at the borders of library calls",
        "largely remain around PyTorch's operators",
    )
    return Answer(
        4 - loss,
        f"Operator by operator the reference moves {ratio:.2g}× its compulsory bytes; "
        f"in this space the round trips {kept[_level(view)]}.",
    )


def operator_count(view: SpaceView) -> Answer:
    count = view.number("operators")
    loss = grade(count, (4, 9, 17, 33)) * (1, 0.75, 0)[_level(view)]
    who = "all by hand" if _level(view) == 0 else "by hand or by library" if _level(view) == 1 else "or left to PyTorch"
    return Answer(4 - loss, f"{count:.0f} operator calls must be rebuilt {who}.")


def dependency_depth(view: SpaceView) -> Answer:
    depth, kernels = view.number("depth"), view.number("fused_depth")
    loss = grade(kernels, (3, 6, 12, 24)) * (1, 0.5, 0)[_level(view)]
    return Answer(
        4 - loss,
        f"The longest path has {depth:.0f} dependent operators, about {kernels:.0f} kernels when chains are fused.",
    )


def reduction_span(view: SpaceView) -> Answer:
    elements = view.number("longest_reduction")
    share = sum(view.number(f"{kind}_share") for kind in ("reduction", "normalisation", "scan"))
    if share < 0.05:
        return Answer(4, f"{share:.0%} of the time is in reductions, norms and scans.")
    loss = 0 if _level(view) == 2 else 0.5 * grade(elements, (1 << 16, 1 << 20, 1 << 24, 1 << 28))
    how = "or left to PyTorch" if _level(view) == 2 else "by hand"
    return Answer(4 - loss, f"Up to {elements:.0f} elements go into one result, combined {how}.")


def library_coverage(view: SpaceView) -> Answer:
    covered = max(0.0, view.number("library_share") - view.number("contraction_share"))
    served = min(covered, view.number("scan_share") + view.number("other_share"))
    level = _level(view)
    absent = level == 1 and view.known("libraries_installed") and not view.flag("libraries_installed")
    loss = 0.25 * grade(served, (0.05, 0.2, 0.5, 0.8)) if level == 0 or absent else 0.0
    missing = " (none is installed)" if absent else ""
    return Answer(4 - loss, f"Libraries{missing} have routines for scans, sorts and the like that take {served:.0%}.")


def beyond_eager(view: SpaceView) -> Answer:
    """PyTorch's operators gain nothing over themselves; elsewhere a tuned contraction can at least be called differently."""
    contractions = view.number("contraction_share")
    alone = max(0.0, 1.0 - contractions - _fusable(view))
    if _level(view) == 2:
        same = contractions + alone
        return Answer(
            4 - _much(same), f"{same:.0%} of the time stays with the very calls of eager PyTorch: nothing is won there."
        )
    tuned = 0.0 if _streams(view) else contractions
    return Answer(
        4 - max(0, _much(tuned) - 1),
        f"{tuned:.0%} of the time is in contractions that eager PyTorch has tuned kernels for: only their algorithm, "
        "layout and epilogue can be chosen better.",
    )


def library_distance(view: SpaceView) -> Answer:
    ratio = view.number("reference_floor_ratio")
    far = grade(ratio, (1.15, 1.5, 2.5, 5))
    score = (far, 4 - far / 2, 4 - far)[_level(view)]
    return Answer(score, f"The library kernels that eager PyTorch calls take {ratio:.2f}× the floor.")


def parameter_effort(view: SpaceView) -> Answer:
    count = view.number("parameters")
    loss = 0 if _level(view) == 2 else grade(count, (5, 13, 41, 121))
    way = "a ModelNew keeps its modules" if _level(view) == 2 else "each comes as one pointer and must be wired by hand"
    return Answer(4 - loss, f"{count:.0f} parameters and buffers; {way}.")


def precision_reach(view: SpaceView) -> Answer:
    share = view.number("contraction_share")
    if share < 0.05:
        return Answer(4, "No contraction to speak of: the fast units do not depend on the space.")
    if _streams(view):
        return Answer(4, "Far below the ridge: any unit is fast enough.")
    if _tuned(view):
        return Answer(4, "Tuned kernels reach the legal units for the contractions.")
    legal = view.flag("tensor_core_legal")
    if view.text("platform") == "cpu":
        return Answer(2, "A hand-blocked matrix product stays well below a tuned library's use of the vector units.")
    if not legal:
        return Answer(3, "Tensor Cores are not legal; well-tiled CUDA-core code comes close to the library.")
    return Answer(1, "Tensor Cores are legal and must be driven by hand (mma.sync or wgmma) in this space.")


def launch_overhead(view: SpaceView) -> Answer:
    calls = view.number("launches") * EAGER_CALL_SECONDS
    work = view.number("floor_seconds") * max(view.number("fusion_ratio"), 1.0)
    share = calls / (calls + work) if calls else 0.0
    loss = grade(share, (0.1, 0.25, 0.5, 0.75)) * LEFT_BETWEEN_CALLS[_level(view)]
    return Answer(4 - loss, f"Launching takes about {share:.0%} of the reference's time (5 µs a call assumed).")


def measured_distance(view: SpaceView) -> Answer:
    best = record_of_space(view.evidence, view.option).best
    ratio = best.floor_ratio if best is not None else None
    view.quote("candidates_in_run", {"best_floor_ratio": None if ratio is None else round(ratio, 3)})
    if ratio is None:
        raise Missing(f"no candidate of {view.option} has been timed in this run")
    return Answer(4 - grade(ratio, (1.15, 1.5, 2.5, 5)), f"The best candidate here takes {ratio:.2f}× the floor.")


def record_in_run(view: SpaceView) -> Answer:
    record = record_of_space(view.evidence, view.option)
    view.quote("candidates_in_run", record.as_evidence())
    if record.attempts == 0:
        raise Missing(f"no candidate of {view.option} has a verdict in this run")
    return Answer(4 * record.passed / record.attempts, f"{record.passed} of {record.attempts} candidates here passed.")


def memory(view: SpaceView) -> Answer:
    evidence = view.evidence
    return answer_of(view, space_priors(evidence.memory, situation_of(evidence), evidence.spaces))


SPACE_CRITERIA: Mapping[str, Scorer[Space]] = MappingProxyType(
    {
        "contraction_coverage": contraction_coverage,
        "fusion_gain": fusion_gain,
        "operator_count": operator_count,
        "dependency_depth": dependency_depth,
        "reduction_span": reduction_span,
        "library_coverage": library_coverage,
        "beyond_eager": beyond_eager,
        "parameter_effort": parameter_effort,
        "precision_reach": precision_reach,
        "launch_overhead": launch_overhead,
        "library_distance": library_distance,
        "measured_distance": measured_distance,
        "record_in_run": record_in_run,
        "memory": memory,
    }
)


def _streams(view: SpaceView) -> bool:
    """Whether the arithmetic is so little that even contractions (depthwise filters, skinny products) only stream."""
    return view.known("intensity_over_ridge") and view.number("intensity_over_ridge") < FAR_BELOW_THE_RIDGE


def _tuned(view: SpaceView) -> bool:
    """Whether tuned kernels serve the contractions here: PyTorch's always, a library's unless it is known to be absent."""
    level = _level(view)
    if level != 1:
        return level == 2
    return not view.known("contraction_library") or view.flag("contraction_library")


def _fusable(view: SpaceView) -> float:
    return view.number("fusable_share") if view.known("fusable_share") else 1.0  # contracts of old versions lack it


def _much(share: float) -> int:
    return grade(share, (0.2, 0.4, 0.6, 0.8))


def _level(view: SpaceView) -> int:
    """0 for hand-written code only, 1 with libraries, 2 with PyTorch operators too."""
    return view.evidence.spaces.index(view.option)
