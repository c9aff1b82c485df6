"""Hardware counters: Nsight Compute's command line, its reports read, and what they say. Pure but for looking where ncu is."""
