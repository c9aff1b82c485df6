"""Reproducible measurements. Each module runs as `python -m benchmarks.NAME`; results/ holds what came out, and where."""
