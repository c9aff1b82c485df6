"""SSDA, second half: which of the five directions to expand. One function per criterion of direction.yaml.

On cpu `tensor_core_instructions` stands for vector instructions (SIMD) and is always allowed.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import JsonValue

from hiera_mcp.model.plan import OptionScore
from hiera_mcp.model.space import Direction, is_cpu
from hiera_mcp.planning.evidence import Evidence
from hiera_mcp.planning.gates import direction_gates
from hiera_mcp.planning.history import lost_rounds, record_of_direction, won_rounds
from hiera_mcp.planning.memory import answer_of, direction_priors, situation_of
from hiera_mcp.planning.rubrics import Rubric, load_rubric
from hiera_mcp.planning.scoring import Answer, Missing, Scorer, View, apply, grade
from hiera_mcp.planning.source_signs import few_warps_by_design, source_signs

DirectionView = View[Direction]

CF = Direction.CONTROL_FLOW
PAR = Direction.PARALLELISM
MEM = Direction.MEMORY_TRANSACTIONS
REU = Direction.REUSE_PIPELINING
TC = Direction.TENSOR_CORE_INSTRUCTIONS

AT_THE_FLOOR = 1.15
"""Below this ratio of time to floor nothing is left to tune (a floor is uncertain by about 5 %)."""
WORTH_FUSING = 1.5
"""From this ratio of bytes moved to compulsory bytes on, fusing comes first."""
SM_REGISTERS, SM_WARPS, WARP = 65536, 64, 32
"""Of sm_80 and sm_90, where no hardware table is at hand (CUDA C++ Programming Guide, technical specifications)."""
FEW_WARPS_SCORE = 1
"""At most this for parallelism where few warps are meant."""
SHORT_SECONDS = 20e-6
"""Below this floor a task cannot fill a GPU for long: launches and parallelism decide."""


def score_directions(evidence: Evidence, rubric: Rubric | None = None) -> tuple[OptionScore, ...]:
    """The five directions, scored and gated."""
    rubric = rubric or load_rubric("direction")
    return tuple(
        apply(rubric, DIRECTION_CRITERIA, evidence, d).model_copy(update={"gates": direction_gates(evidence, d)})
        for d in Direction
    )


def task_affinity(view: DirectionView) -> Answer:
    return _AFFINITY[view.option](view)


def _control_flow_affinity(view: DirectionView) -> Answer:
    share = view.number("conv_share") + view.number("movement_share") + view.number("scan_share")
    return Answer(1 + 2 * share, f"{share:.0%} of the time is in operators with borders or irregular indices.")


def _parallelism_affinity(view: DirectionView) -> Answer:
    combined = view.number("reduction_share") + view.number("normalisation_share")
    scans = view.number("scan_share")
    short = view.number("floor_seconds") < SHORT_SECONDS
    first_on_cpu = view.text("platform") == "cpu" and not view.known("speedup")
    note = " It is short, so filling the machine matters." if short else ""
    note += " On a CPU, spreading the work over cores comes first." if first_on_cpu else ""
    score = 1 + 2 * combined + 3 * scans + short + first_on_cpu
    return Answer(score, f"{combined + scans:.0%} of the time must be combined across threads.{note}")


def _memory_affinity(view: DirectionView) -> Answer:
    share = max(0.0, view.number("streaming_share") - view.number("scan_share"))
    return Answer(1 + 3 * share, f"{share:.0%} of the time is in operators that stream through memory.")


def _reuse_affinity(view: DirectionView) -> Answer:
    contractions = view.number("contraction_share")
    ratio = view.number("fusion_ratio")
    score = max(3 * contractions, grade(ratio, (1.1, 1.25, 1.5, 2)))
    return Answer(
        score,
        f"{contractions:.0%} of the time reuses operands, and operator by operator {ratio:.2g}× the compulsory bytes move.",
    )


def _instruction_affinity(view: DirectionView) -> Answer:
    share = view.number("contraction_share")
    if view.text("platform") == "cpu":
        dense = share + view.number("elementwise_share") + view.number("normalisation_share")
        return Answer(1 + 2 * dense, f"{min(dense, 1):.0%} of the time is dense arithmetic for vector instructions.")
    if not view.flag("tensor_core_legal"):
        return Answer(0, "Tensor Cores are not legal for this contract.")
    return Answer(4 * share, f"{share:.0%} of the time is in contractions that Tensor Cores may do.")


_AFFINITY: Mapping[Direction, Scorer[Direction]] = MappingProxyType(
    {
        CF: _control_flow_affinity,
        PAR: _parallelism_affinity,
        MEM: _memory_affinity,
        REU: _reuse_affinity,
        TC: _instruction_affinity,
    }
)

_BY_FLOOR: Mapping[str, Mapping[Direction, float]] = MappingProxyType(
    {
        "memory": MappingProxyType({CF: 1, PAR: 2, TC: 0}),
        "math": MappingProxyType({CF: 2, PAR: 2, MEM: 1, REU: 3, TC: 4}),
    }
)


def bound_match(view: DirectionView) -> Answer:
    bound = view.text("floor_bound")
    ratio = view.number("intensity_over_ridge")
    why = f"The floor is bound by {bound}: intensity is {ratio:.2g}× the ridge."
    if bound == "memory" and view.option in (MEM, REU):
        return _fewer_or_better_bytes(view, why)
    if bound == "memory" and view.option is TC and is_cpu(view.evidence.target):
        return Answer(2, why + " Wide loads need vector instructions.")
    return Answer(_BY_FLOOR[bound][view.option], why)


def _fewer_or_better_bytes(view: DirectionView, why: str) -> Answer:
    """Removing bytes comes before moving the rest better."""
    fusion = view.number("fusion_ratio")
    if fusion >= WORTH_FUSING:
        return Answer(4 if view.option is REU else 3, f"{why} Fusing removes bytes ({fusion:.2g}× are moved now).")
    return Answer(4 if view.option is MEM else 2, f"{why} There is little to fuse ({fusion:.2g}× are moved now).")


def static_signs(view: DirectionView) -> Answer:
    return _STATIC[view.option](view)


def _static_control_flow(view: DirectionView) -> Answer:
    share = view.number("branch_share")
    return Answer(grade(share, (0.05, 0.1, 0.15, 0.2)), f"{share:.0%} of the instructions are branches.")


def _static_parallelism(view: DirectionView) -> Answer:
    if not view.known("occupancy") and view.known("registers") and view.text("platform") == "cuda":
        return _occupancy_by_registers(view)
    percent = view.number("occupancy")
    limiter = view.text("occupancy_limiter")
    score = 4 - grade(percent, (25, 40, 60, 80))
    if score > FEW_WARPS_SCORE and (design := few_warps_by_design(view)):
        return Answer(FEW_WARPS_SCORE, f"Theoretical occupancy is {percent:.0f} %, as is meant with {design}.")
    return Answer(score, f"Theoretical occupancy is {percent:.0f} %, limited by {limiter}.")


def _occupancy_by_registers(view: DirectionView) -> Answer:
    """What the build alone tells: warps of an SM, as far as registers limit them."""
    registers, gpu = view.number("registers"), view.evidence.gpu
    file, warps = (gpu.registers_per_sm, gpu.warps_per_sm) if gpu else (SM_REGISTERS, SM_WARPS)
    percent = 100 * min(1.0, file // (WARP * max(1.0, registers)) / warps)
    score = 4 - grade(percent, (25, 40, 60, 80))
    if score > FEW_WARPS_SCORE and (design := few_warps_by_design(view)):
        return Answer(FEW_WARPS_SCORE, f"{registers:.0f} registers a thread, as is meant with {design}.")
    return Answer(score, f"{registers:.0f} registers a thread leave at most {percent:.0f} % occupancy.")


def _static_memory(view: DirectionView) -> Answer:
    share = view.number("wide_load_share")
    return Answer(4 - grade(share, (0.1, 0.3, 0.6, 0.9)), f"{share:.0%} of the loads are wide.")


def _static_reuse(view: DirectionView) -> Answer:
    if view.known("spill_bytes") and view.number("spill_bytes") > 0:
        return Answer(3, f"Registers spill ({view.number('spill_bytes'):.0f} bytes a thread): the tile is too large.")
    share = view.number("memory_share")
    return Answer(grade(share, (0.1, 0.2, 0.3, 0.45)), f"{share:.0%} of the instructions are loads and stores.")


def _static_instructions(view: DirectionView) -> Answer:
    if view.text("platform") == "cpu":
        share = view.number("wide_load_share")
        return Answer(4 - grade(share, (0.1, 0.3, 0.6, 0.9)), f"{share:.0%} of the loads are vectors.")
    used, share = view.number("tensor_instructions"), view.number("contraction_share")
    if used > 0:
        return Answer(1, f"{used:.0f} Tensor Core instructions are in the binary already.")
    return Answer(4 if share >= 0.2 else 0, f"No Tensor Core instruction, and {share:.0%} of the time in contractions.")


_STATIC: Mapping[Direction, Scorer[Direction]] = MappingProxyType(
    {
        CF: _static_control_flow,
        PAR: _static_parallelism,
        MEM: _static_memory,
        REU: _static_reuse,
        TC: _static_instructions,
    }
)

_BY_BOTTLENECK: Mapping[str, Mapping[Direction, float]] = MappingProxyType(
    {
        "memory": MappingProxyType({CF: 1, PAR: 1, MEM: 4, REU: 3, TC: 0}),
        "compute": MappingProxyType({CF: 2, PAR: 1, MEM: 1, REU: 2, TC: 4}),
        "latency": MappingProxyType({CF: 1, PAR: 4, MEM: 2, REU: 3, TC: 1}),
        "launch": MappingProxyType({CF: 1, PAR: 4, MEM: 0, REU: 3, TC: 0}),
    }
)


def profile_signs(view: DirectionView) -> Answer:
    """What the counters of the best candidate speak for; where none were read, what its bottleneck suggests."""
    bottleneck, profile = view.text("bottleneck"), view.evidence.profile
    judged = next((d for d in profile.directions if d.direction is view.option), None) if profile else None
    if judged is not None:
        signs: dict[str, list[JsonValue]] = {"for": [*judged.signs_for[:3]], "against": [*judged.signs_against[:2]]}
        view.quote("signs_in_profile", {**signs})
        words = [f"{side} it: {'; '.join(map(str, found))}" for side, found in signs.items() if found]
        return Answer(judged.score, f"Bound by {bottleneck}. {'. '.join(words) or 'No counter speaks for it'}.")
    table = _BY_BOTTLENECK.get(bottleneck)
    if table is None:
        raise Missing("the profile names no bottleneck")
    if view.option is PAR and bottleneck == "latency" and (design := few_warps_by_design(view)):
        return Answer(FEW_WARPS_SCORE, f"Near no peak, but it has few warps by design, with {design}.")
    return Answer(table[view.option], f"The profile says: bound by {bottleneck}.")


def headroom(view: DirectionView) -> Answer:
    ratio = view.number("floor_ratio")
    if ratio < AT_THE_FLOOR:
        return Answer(0, f"The best candidate takes {ratio:.2f}× the floor: nothing is left to tune.")
    room = grade(ratio, (AT_THE_FLOOR, 1.5, 2.5, 5))
    if view.option is CF:
        return Answer(4 - room, f"At {ratio:.2f}× the floor, specialising code pays only once the rest is done.")
    return Answer(room, f"At {ratio:.2f}× the floor there is room for structural change.")


def record_in_run(view: DirectionView) -> Answer:
    record = record_of_direction(view.evidence, view.option)
    won, lost = won_rounds(view.evidence, view.option), lost_rounds(view.evidence, view.option)
    view.quote("candidates_in_run", {**record.as_evidence(), "won": [*won], "lost": [*lost]})
    if not won and not lost:
        raise Missing(f"{view.option} has not been tried in this run")
    score = max(0, (3 if won else 2) - len(lost)) if len(lost) < 2 or won else 0
    return Answer(score, f"Rounds in which it gave something faster: {len(won)}; in which it did not: {len(lost)}.")


def memory(view: DirectionView) -> Answer:
    evidence = view.evidence
    return answer_of(view, direction_priors(evidence.memory, situation_of(evidence, evidence.space)))


DIRECTION_CRITERIA: Mapping[str, Scorer[Direction]] = MappingProxyType(
    {
        "task_affinity": task_affinity,
        "bound_match": bound_match,
        "static_signs": static_signs,
        "source_signs": source_signs,
        "profile_signs": profile_signs,
        "headroom": headroom,
        "record_in_run": record_in_run,
        "memory": memory,
    }
)
