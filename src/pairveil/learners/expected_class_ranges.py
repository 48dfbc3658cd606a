"""Expected share of the gain by signal: written by ``python -m tools.expected_ranges``."""

WITH_DELTA = (
    (4.0, 0.0, 0.0),
    (8.0, 0.0, 0.5),
    (16.0, 0.0, 0.85),
    (32.0, 0.0, 0.95),
    (64.0, 0.45, 1.0),
    (128.0, 0.65, 1.0),
    (256.0, 0.65, 1.0),
    (512.0, 0.7, 1.0),
)
"""(signal, low, high), for noise with a delta."""

PURE = (
    (64.0, 0.0, 0.0),
    (128.0, 0.0, 0.45),
    (256.0, 0.0, 0.7),
    (512.0, 0.0, 0.75),
    (1024.0, 0.05, 0.75),
    (2048.0, 0.45, 0.75),
    (4096.0, 0.45, 0.85),
)
"""(signal, low, high), for noise without."""
