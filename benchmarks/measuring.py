"""How benchmarks measure: each figure in a process of its own, with its peak memory and its machine."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pairveil.errors import InputError, PairveilError
from pairveil.files import file_draft, write_file


def in_fresh_process(
    module: str, function: str, *arguments: str, one_core: bool = False
) -> dict[str, Any]:
    """Run ``module.function(*arguments)``, which prints one JSON object, and return that object.

    A process of its own: its peak memory is that of what it ran, and of nothing before.

    Parameters
    ----------
    arguments : str
    one_core : bool
        Libraries that compute in parallel are told to use one thread.
    """
    code = f"from {module} import {function}; import sys; {function}(*sys.argv[1:])"
    command = [sys.executable, "-P", "-c", code, *arguments]
    return last_object(command, f"measuring {' '.join(arguments)} failed", one_core)


def last_object(command: Sequence[str], failed: str, one_core: bool) -> dict[str, Any]:
    """Run a command whose last line is a JSON object; an error begins with ``failed``."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    limits = dict.fromkeys(names, "1") if one_core else {}
    # The measuring code is not installed; the folder that a user works in is not on the path (-P).
    limits["PYTHONPATH"] = str(Path(__file__).parents[1])
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | limits
    )
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise PairveilError(f"{failed}: {reason[0][:200]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check_sizes(sizes: Sequence[int], least: int, out: str | Path | None) -> None:
    """Say what is wrong or missing before anything is measured."""
    if not sizes or min(sizes) < least:
        raise InputError(f"sizes must be numbers of pairs of at least {least:,}")
    if out is not None and importlib.util.find_spec("matplotlib") is None:
        raise InputError("the plot needs matplotlib: pip install 'pairveil[plots]'")


def write_result(
    result: dict[str, Any],
    folder: str | Path | None,
    name: str,
    draw: Callable[[dict[str, Any], Any], str] | None = None,
) -> None:
    """``name.json`` and ``name.png`` into a folder, each whole or not at all; None writes nothing.

    ``draw`` puts the lines over the number of pairs into matplotlib axes and returns the title.
    """
    if folder is None:
        return
    path = Path(folder) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    if draw is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.subplots()
        axes.set_title(draw(result, axes))
        axes.set(xscale="log", yscale="log", xlabel="pairs")
        axes.grid(alpha=0.3)
        axes.legend()
        with file_draft(path.with_suffix(".png")) as plot:
            figure.savefig(plot, dpi=150, format="png")
    write_file(path, json.dumps(result, indent=2) + "\n")


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
