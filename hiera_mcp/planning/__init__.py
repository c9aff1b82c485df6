"""Planning as pure functions on values: rubrics, scores, gates, parents, the next step. No I/O but package data."""
