"""What `make bench` keeps of a run of the kernels: one row each, in processor time of this process."""

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_json(benchmarks, output_json):
    """Replace pytest-benchmark's record, which names the machine and its owner, by a table."""
    from benchmarks.measuring import machine

    rows = [
        {
            "kernel": found.extra_info["kernel"],
            "ms": 1000 * found.stats.median,
            "best_ms": 1000 * found.stats.min,
            "ns_each": 1e9 * found.stats.median / found.extra_info["count"],
            "rounds": found.stats.rounds,
        }
        for found in benchmarks
    ]
    output_json.clear()
    output_json.update({"rows": rows, "machine": machine()})
