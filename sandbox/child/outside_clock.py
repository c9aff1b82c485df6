"""What the judge's own clock says of each claim for a single cold call on `cpu`. Pure.

The judge knows what a request costs beside the call: it rehearsed some before the candidate was loaded, when nothing of the
candidate could answer late on purpose. What an answer took beyond that and beyond the claim, the claim leaves out. A claim
counts only as far as this clock bears it out, call by call; and where most claims leave something out, none is credible.
"""

from collections.abc import Sequence

from hiera_mcp.sandbox.child.measure import Samples

QUICK, SLOW = 0.1, 0.75
"""Quantiles of the requests: of those that nothing disturbed, and the one up to which a delay is the host's."""
MOST = 2.0
"""The greater quantile counts up to so many times the lesser one."""
ABSOLUTE_S = 20e-6
SERIES_S = 100e-6
KEPT = 4.0
"""So much faster than with inputs of its own a call may be that repeats the last one: by a warm cache."""
RELATIVE, SHARE = 0.1, 0.75
"""What claims may leave out before none is credible: of the claim itself, and of a request's cost. Wide, because a host that
grows busy delays the answers, and because what is left out below that is counted all the same."""


def bear_out(samples: Samples) -> None:
    """Raise each claim to what the judge's clock says at least, and keep what was claimed."""
    if not samples.rehearsed:
        return
    samples.claimed = samples.candidate
    quick, slow = (quantile(samples.rehearsed, share) for share in (QUICK, SLOW))
    cost = min(slow, MOST * quick) + samples.delivery + ABSOLUTE_S
    _raise(samples, [outside - cost for outside in samples.outside])


def unraised(samples: Samples) -> float:
    """The time up to which `bear_out_warm` raises no claim."""
    return quantile(samples.candidate, 0.5) / (1 - RELATIVE) + samples.warm_delivery


def bear_out_warm(samples: Samples, warm_s: float) -> None:
    """Raise each claim to what a call takes at least that is made right after others: `warm_s`, of clocks.fresh_time.

    Short calls, which the clock around one request tells least of, are bounded by this one.
    """
    if samples.rehearsed:
        _raise(samples, [(1 - RELATIVE) * (warm_s - samples.warm_delivery)] * len(samples.candidate))


def _raise(samples: Samples, least: Sequence[float]) -> None:
    samples.candidate = [max(claim, bound) for claim, bound in zip(samples.candidate, least, strict=True)]
    reference, candidate = samples.net(samples.reference), samples.net(samples.candidate)
    pairs = range(0, len(candidate), 2)
    samples.ratios = [sum(reference[n : n + 2]) / sum(candidate[n : n + 2]) for n in pairs]


def implausible(samples: Samples) -> list[str]:
    """What is not credible about the claims, with the numbers; empty where nothing is, or nothing was rehearsed."""
    if not samples.rehearsed:
        return []
    missing, allowed = left_out(samples)
    if missing <= allowed:
        return []
    claimed = f"the runner claims {quantile(samples.claimed or samples.candidate, 0.5) * 1e6:.4g} us for one cold call"
    return [f"{claimed}, the judge's clock outside says {missing * 1e6:.4g} us more (allowed {allowed * 1e6:.4g} us)"]


def series_implausible(samples: Samples) -> list[str]:
    """The same for many calls that one request asked for: what their claims and deliveries leave of its time."""
    count = len(samples.candidate)
    mean = sum(samples.candidate) / count
    missing = samples.together / count - mean - samples.delivery
    allowed = RELATIVE * mean + SERIES_S
    if missing <= allowed:
        return []
    claimed = f"the runner claims {mean * 1e6:.4g} us for each of {count} calls"
    return [f"{claimed}, the judge's clock outside says {missing * 1e6:.4g} us more (allowed {allowed * 1e6:.4g} us)"]


def kept(samples: Samples, fresh_s: float) -> list[str]:
    """Whether calls that follow each other on the same inputs are too quick beside `fresh_s`, which a call takes at least that
    has inputs of its own: results are kept. A cache that is warm makes a call some times as fast."""
    mean = sum(samples.candidate) / len(samples.candidate)
    least = (1 - RELATIVE) * (fresh_s - samples.warm_delivery)
    if KEPT * mean >= least - SERIES_S:
        return []
    claimed = f"the runner claims {mean * 1e6:.4g} us for each of {len(samples.candidate)} calls on the same inputs"
    return [
        f"{claimed}; on inputs of its own one takes {least * 1e6:.4g} us at least: results are kept from call to call"
    ]


def left_out(samples: Samples) -> tuple[float, float]:
    """Seconds per call that the claims leave out, and how much is allowed.

    The quickest answers, which a busy neighbour does not reach, against the rehearsals; or against requests that called
    nothing in between, as far as these are not suspiciously slow themselves.
    """
    beside = [
        outside - claim for outside, claim in zip(samples.outside, samples.claimed or samples.candidate, strict=True)
    ]
    rehearsed = quantile(samples.rehearsed, QUICK)
    between = quantile(samples.empty, QUICK) if samples.empty else 0.0
    cost = max(rehearsed, min(between, (1 + SHARE) * rehearsed)) + samples.delivery
    allowed = SHARE * cost + RELATIVE * quantile(samples.claimed or samples.candidate, 0.5) + ABSOLUTE_S
    return quantile(beside, QUICK) - cost, allowed


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the others lies."""
    ordered = sorted(values)
    return ordered[round(share * (len(ordered) - 1))]
