"""Run metric-learn's own tests with our learner, at epsilon=inf, in its registry.

metric-learn 0.7 needs scikit-learn 1.5, so it runs in an environment of its own:

    python -m venv /tmp/ml && /tmp/ml/bin/pip install "scikit-learn==1.5.2" "numpy==2.0.2" "scipy<1.15" \
        "pytest<8" pandas metric-learn==0.7.0 -e .
    pip download --no-deps --no-binary :all: metric-learn==0.7.0 && tar xzf metric-learn-0.7.0.tar.gz
    python -m tools.metric_learn_suite metric-learn-0.7.0 --python /tmp/ml/bin/python

Left out: tests of its private helpers (which a learner that does not derive from its classes has not), tests
that compare an error's wording, and the two that transform pairs in a pipeline (`transform` maps people).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ENTRY = "(DPPMetricLearner(epsilon=float('inf'), select='all', n_steps=5), build_pairs),"
PRIVATE_HELPERS = ("validate_calibration_params", "error_message_t")
WORDING = (
    "test_n_components",
    "score_pairs_warning",
    "pair_distance_dim",
    "embed_dim",
    "invalid_y",
)
DIFFERENT = ("pipeline_consistency",)
LEFT_OUT = (*PRIVATE_HELPERS, *WORDING, *DIFFERENT)


def prepare(sdist: Path, folder: Path) -> None:
    """Copy the tests of an unpacked source distribution, with our learner in their registry."""
    shutil.copytree(sdist / "test", folder / "test")
    (folder / "test" / "__init__.py").touch()  # else Python's own package `test` is found first
    registry = folder / "test" / "test_utils.py"
    text = registry.read_text()
    start = "pairs_learners = ["
    if text.count(f"\n{start}") != 1:
        raise SystemExit("this is not metric-learn 0.7: its registry is not where it was")
    learner = f"from pairveil import DPPMetricLearner\n{start}{ENTRY} "
    registry.write_text(text.replace(f"\n{start}", f"\n{learner}"))


def run(sdist: Path, python: str) -> tuple[int, int, str]:
    """Tests that passed and failed, and what pytest printed."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(sdist, Path(folder))
        chosen = " and ".join(["DPPMetricLearner", *(f"not {name}" for name in LEFT_OUT)])
        words = [
            python,
            "-m",
            "pytest",
            "test",
            "-q",
            "-W",
            "ignore",
            "-p",
            "no:cacheprovider",
            "-k",
            chosen,
        ]
        paths = os.pathsep.join([folder, str(Path(__file__).parents[1] / "src")])
        done = subprocess.run(
            words, cwd=folder, env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    return counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0), done.stdout


def main() -> None:
    """Print how many pass; exit with 1 if any fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sdist", type=Path, help="folder of the unpacked metric-learn-0.7.0.tar.gz")
    parser.add_argument(
        "--python", required=True, help="python with metric-learn and scikit-learn 1.5"
    )
    given = parser.parse_args()
    passed, failed, text = run(given.sdist, given.python)
    print(text if failed or not passed else f"{passed} tests of metric-learn pass")
    raise SystemExit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
