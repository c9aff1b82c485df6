"""What may and may not be prepared around norms over channels, in words."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hiera_mcp.contracts.foldings import Foldings, Norm
from hiera_mcp.contracts.parameter_rules import Rule
from hiera_mcp.contracts.readings import Reading
from hiera_mcp.model.work import TracedParameter

_STATISTICS = ("running_mean", "running_var")


def with_norms(rule: Rule, p: TracedParameter, uses: Sequence[Reading], foldings: Foldings) -> Rule:
    """The rule of a parameter with what the norms that read it, or that follow its contraction, allow."""
    own = [foldings.norms[r.call] for r in uses if r.call in foldings.norms and r.argument.name != "input"]
    if own:
        return _of_a_norm(rule, p, uses, own, foldings)
    contracted = [r for r in uses if r.argument.name in ("weight", "mat2", "bias", "self", "batch2")]
    behind = {n.call: (n, alone) for r in contracted for n, alone in foldings.norms_behind(r)}
    return _before_a_norm(rule, [*behind.values()]) if behind else rule


def _of_a_norm(
    rule: Rule, p: TracedParameter, uses: Sequence[Reading], norms: Sequence[Norm], foldings: Foldings
) -> Rule:
    """weight, bias, running_mean or running_var of a norm."""
    if all(n.batch for n in norms):
        return _of_the_batch(rule, norms)
    scale = scale_and_shift(p, uses)
    where = _unique(
        f"into {foldings.name(n.before)} before it (scale on each output channel of its weight, its bias becomes bias · scale + shift: the norm "
        "alone reads that result)"
        for n in norms
        if n.before is not None
    )
    where += _unique(
        f"into {foldings.name(n.after)} after it (it alone reads the norm's result)"
        for n in norms
        if n.after is not None
    )
    folded = f"; they may be folded {' or '.join(where)}" if where else ""
    against = _unique(f"{n.name} folded into what comes before it: {n.reason}" for n in norms if n.reason)
    may = f"scale and shift of each channel: {scale}{folded}"
    mode = "normalises by running_mean and running_var (eval mode)"
    return replace(rule, constraints=(*rule.constraints, mode), may=may, must_not="; ".join(against))


def scale_and_shift(p: TracedParameter, uses: Sequence[Reading]) -> str:
    """The two constants of each channel that an eval-mode norm comes down to."""
    reading = next(r for r in uses if "batch_norm" in r.operator.name)
    given = {a.name for a in reading.operator.arguments}
    eps = reading.operator.settings.get("eps", p.settings.get("eps", "eps"))
    weight = "weight" if "weight" in given else "1"
    shift = "bias - running_mean · scale" if "bias" in given else "-running_mean · scale"
    return f"scale = {weight} / sqrt(running_var + {eps}), shift = {shift}"


def _of_the_batch(rule: Rule, norms: Sequence[Norm]) -> Rule:
    """Statistics of the norm's own input: nothing to fold."""
    own = f"the norm uses the mean and variance of its own input ({norms[0].extent} elements each), new in each call"
    if rule.role not in _STATISTICS:
        return replace(rule, may="", must_not=f"scale and shift of each channel, or a fold into a neighbour: {own}")
    unread = f"no effect on the output: {own} (train mode), and only averages them here"
    return replace(rule, constraints=(*rule.constraints, unread), may="", must_not="scale or shift from it")


def _before_a_norm(rule: Rule, behind: Sequence[tuple[Norm, bool]]) -> Rule:
    """Weight or bias of a contraction that a norm follows."""
    folded = _unique(
        f"with {n.name} folded in (scale[c] on each output channel)" for n, _ in behind if n.before is not None
    )
    against = _unique(f"{n.name} folded in: {_why_not(n)}" for n, _ in behind if n.before is None)
    lost = rule.role == "bias" and all(n.batch and alone for n, alone in behind)
    cancels = ("cancels out: the norm that alone reads the result subtracts the mean of each channel",) if lost else ()
    may = ", ".join([t for t in (rule.may, *folded) if t])
    told = "; ".join([t for t in (rule.must_not, *against) if t])
    return replace(rule, constraints=(*rule.constraints, *cancels), may=may, must_not=told)


def _why_not(norm: Norm) -> str:
    return "its statistics are those of its own input in each call" if norm.batch else norm.reason


def _unique(texts: Iterable[str], most: int = 3) -> list[str]:
    found = list(dict.fromkeys(texts))
    return [*found[:most], f"{len(found) - most} more"] if len(found) > most else found
