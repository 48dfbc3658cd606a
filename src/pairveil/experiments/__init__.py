"""The paper's tables and figures, and our own benchmarks."""
