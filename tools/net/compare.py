"""Run the scenarios on the reference commit and on this tree, and report each difference that is not listed.

::

    python -m tools.net.compare                 # all scenarios
    python -m tools.net.compare pairs command   # those whose names hold one of these words

The reference is taken from its commit once, into ``.venv/net/``, beside the packages of this environment.
What may differ is listed in ``expected.toml`` with the reason: a pattern over ``scenario / field``, and for
numbers a tolerance relative to the largest entry.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
KEPT = ROOT / ".venv" / "net"


def reference_python(commit: str) -> Path:
    """An environment with pairveil as it was at a commit, and everything else as it is here."""
    folder = KEPT / commit[:12]
    python = folder / "bin" / "python"
    if not (folder / "made").exists():
        tree = folder / "tree"
        tree.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(
            ["git", "archive", commit, "src", "tests/stored"],
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
        )
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
        venv.create(folder, symlinks=True)
        site = (
            folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        )
        packages = {
            sysconfig.get_path("purelib"),
            *(p for p in sys.path if p.endswith("site-packages")),
        }
        (site / "reference.pth").write_text(
            "\n".join([str(tree / "src"), *sorted(packages)]) + "\n"
        )
        (folder / "made").touch()
    return python


def run(python: Path, source: Path | None, words: list[str]) -> dict[str, Any]:
    """What the scenarios give in one environment; ``source`` comes before what is installed there."""
    env = {**os.environ, "NET_STORED": str(ROOT / "tests" / "stored"), "OMP_NUM_THREADS": "1"}
    env.pop("PYTHONPATH", None)
    if source is not None:
        env["PYTHONPATH"] = str(source)
    with TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        command = [str(python), "-P", str(HERE / "scenarios.py"), str(out), *words]
        subprocess.run(command, check=True, env=env, cwd=ROOT)
        found: dict[str, Any] = json.loads(out.read_text())
    return found


def differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, str, float]]:
    """Fields that differ: where, how, and for numbers by how much of the largest entry (else infinite)."""
    if isinstance(old, dict) and isinstance(new, dict):
        if "sha256" in old and "sha256" in new:
            if old["sha256"] != new["sha256"]:
                yield path, "numbers differ", _apart(old, new)
            return
        for name in sorted({*old, *new}):
            if name not in old or name not in new:
                yield (
                    f"{path} / {name}",
                    "only " + ("here" if name in new else "in the reference"),
                    float("inf"),
                )
            else:
                yield from differences(f"{path} / {name}", old[name], new[name])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(f"{path} / {place}", one, other)
    elif old != new:
        both = isinstance(old, int | float) and isinstance(new, int | float)
        apart = abs(old - new) / max(abs(old), abs(new)) if both else float("inf")
        yield path, f"{_short(old)} -> {_short(new)}", apart


def _apart(old: dict[str, Any], new: dict[str, Any]) -> float:
    if old["shape"] != new["shape"]:
        return float("inf")
    largest = max(map(abs, old["values"]), default=0.0) or 1.0
    return max(abs(a - b) for a, b in zip(old["values"], new["values"], strict=True)) / largest


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 90 else text[:87] + "..."


def allowed(where: str, apart: float, rules: list[dict[str, Any]]) -> bool:
    """Whether a rule of ``expected.toml`` covers a difference."""
    return any(
        re.search(rule["where"], where) and apart <= rule.get("within", float("inf"))
        for rule in rules
    )


def unneeded(
    seen: list[tuple[str, str, float]], rules: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Rules that cover no difference: they would hide the next one."""
    return [rule for rule in rules if not any(allowed(one[0], one[2], [rule]) for one in seen)]


def main(words: list[str]) -> int:
    """Compare, print, and return 1 where something differs that nobody listed, or a rule has no use."""
    listed = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
    KEPT.mkdir(parents=True, exist_ok=True)
    old = run(reference_python(listed["reference"]), None, words)
    new = run(Path(sys.executable), ROOT / "src", words)
    rules = listed.get("change", [])
    seen = [
        one
        for name in sorted({*old, *new})
        for one in differences(name, old.get(name), new.get(name))
    ]
    loud = [one for one in seen if not allowed(one[0], one[2], rules)]
    for where, how, apart in loud:
        print(f"{where}: {how}" + ("" if apart == float("inf") else f" ({apart:.2g})"))
    idle = [] if words else unneeded(seen, rules)
    for rule in idle:
        print(f"expected.toml: nothing differs at {rule['where']}: take the rule out")
    print(f"{len(new)} scenarios, {len(seen) - len(loud)} listed differences, {len(loud)} others")
    return int(bool(loud or idle))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
