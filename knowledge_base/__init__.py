"""Expert knowledge: entries, hardware tables and the full-text index. Knows nothing of runs."""
