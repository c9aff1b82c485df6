"""The launcher: one small process that starts, limits and ends everything that touches untrusted code."""
