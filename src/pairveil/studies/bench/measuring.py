"""How benchmarks measure: each figure in a process of its own, with its peak memory and its machine."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pairveil.errors import PairveilError


def in_fresh_process(
    module: str, function: str, *arguments: str, one_core: bool = False
) -> dict[str, Any]:
    """Run ``module.function(*arguments)``, which prints one JSON object, and return that object.

    A process of its own: its peak memory is that of what it ran, and of nothing before.

    Parameters
    ----------
    module, function : str
    arguments : str
    one_core : bool
        Libraries that compute in parallel are told to use one thread.
    """
    code = f"from {module} import {function}; import sys; {function}(*sys.argv[1:])"
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    limits = dict.fromkeys(names, "1") if one_core else {}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | limits,
    )
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise PairveilError(f"measuring {' '.join(arguments)} failed: {reason[0]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> float | None:
    """Slope of log time over log size: 1 is linear. None with fewer than two sizes.

    Examples
    --------
    >>> growth([10, 100, 1000], [1, 10, 100])
    1.0
    """
    if len(set(sizes)) < 2:
        return None
    return round(float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]), 3)


def peak_mb() -> float:
    """Peak resident memory of this process. getrusage would include the parent's, before exec."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024  # bytes on macOS


def machine() -> dict[str, Any]:
    """What the figures were measured on, and how busy it was (1-minute load at the end)."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [s for s in cpuinfo.read_text().splitlines() if s.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }
