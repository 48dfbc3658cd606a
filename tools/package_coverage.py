"""Print the branch coverage of each package of pairveil, from the data that a test run left behind.

Compiled loops are left out: numba runs them, and no tracer sees inside (their tests compare them with plain
loops instead).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple


class Counted(NamedTuple):
    """Lines and branches that there are, and those that ran."""

    lines: int = 0
    lines_run: int = 0
    branches: int = 0
    branches_run: int = 0

    def plus(self, summary: dict[str, Any]) -> Counted:
        """With the figures of one more file, as coverage's JSON report has them."""
        return Counted(
            self.lines + summary["num_statements"],
            self.lines_run + summary["covered_lines"],
            self.branches + summary["num_branches"],
            self.branches_run + summary["covered_branches"],
        )

    def row(self, name: str) -> str:
        """One line of the table."""
        lines = 100 * self.lines_run / max(1, self.lines)
        branches = 100 * self.branches_run / max(1, self.branches)
        return (
            f"{name:12} {self.lines:6,} lines {lines:5.1f} %   "
            f"{self.branches:6,} branches {branches:5.1f} %"
        )


def by_package(report: dict[str, Any]) -> dict[str, Counted]:
    """Figures of each package in a JSON report of coverage."""
    packages: dict[str, Counted] = defaultdict(Counted)
    for name, file in report["files"].items():
        inside = Path(name).parts[Path(name).parts.index("pairveil") + 1 :]
        package = inside[0] if len(inside) > 1 else "pairveil"
        packages[package] = packages[package].plus(file["summary"])
    return dict(sorted(packages.items()))


def main() -> None:
    """Read ``.coverage`` in this folder and print the table."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "coverage.json"
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", str(out)], check=True)
        report = json.loads(out.read_text())
    print("\nBranch coverage by package (compiled loops left out):")
    for name, counted in by_package(report).items():
        print(counted.row(name))
    print(Counted().plus(report["totals"]).row("together"))


if __name__ == "__main__":
    main()
