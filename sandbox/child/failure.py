"""What a candidate did wrong, in words; the runner reports it, the judge passes it on."""


class CandidateFailure(Exception):
    """A call of the candidate returned an error or raised, or it cannot be loaded. `str()` says what was seen."""
