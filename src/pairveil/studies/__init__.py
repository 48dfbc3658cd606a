"""Studies of the method: the published algorithm, the paper rerun, benchmarks. No library code needs them."""
