"""Measurements, one module each with a ``run``; all but `tuples` are commands of ``python -m benchmarks``.

`measuring` starts each figure in a process of its own; `page` makes results/README.md and docs/benchmarks.md.
"""
