"""Plant one privacy error after another and see that the ordinary tests catch each (``make mutants``).

The errors are listed in `tools.mutations`: a snippet that occurs once in the sources, what it becomes, and
the tests that must notice. Nothing refers to a path, so code may move; a snippet that is gone is an error,
not a pass. The work is done in a copy of the repository. Names on the command line choose mutations::

    python -m tools.mutants                 # all of them
    python -m tools.mutants kappa threshold # those whose names contain one of these words
    python -m tools.mutants --slice 2/30    # the second of thirty runs that together plant all
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parent.parent
COPIED = (
    "src", "tests", "benchmarks", "reproduction", "docs", "examples", "tools", "conftest.py",
    "pyproject.toml", "README.md",
)  # fmt: skip
PASSED, FAILED = 0, 1  # exit codes of pytest
TOO_LONG = 900.0  # seconds for the tests of one mutation


def holding(mutation: Mutation, root: Path = ROOT) -> Path:
    """The one source file that holds a mutation's snippet, exactly once."""
    found = [
        path
        for path in sorted((root / "src").rglob("*.py"))
        for _ in range(path.read_text(encoding="utf-8").count(mutation.snippet))
    ]
    if len(found) != 1:
        raise LookupError(f"{mutation.name}: its snippet occurs {len(found)} times, not once")
    return found[0]


def checking(mutation: Mutation, root: Path = ROOT) -> list[Path]:
    """The test files that must notice a mutation, wherever they stand."""
    found = {name: list((root / "tests").rglob(f"{name}.py")) for name in mutation.tests}
    for name, paths in found.items():
        if len(paths) != 1:
            raise LookupError(f"{mutation.name}: there are {len(paths)} files {name}.py, not one")
    return [paths[0] for paths in found.values()]


def run_tests(tests: list[Path], root: Path) -> int:
    """Exit code of pytest on some files of a copy; stops at the first failure."""
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*words, *map(str, tests)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        timeout=TOO_LONG,
        check=False,
    )
    return done.returncode


def plant(mutation: Mutation, root: Path, turn: int) -> str:
    """Run a mutation's tests on a copy with the error in it: 'caught', 'survived' or what went wrong."""
    place = holding(mutation, root)
    sound = place.read_text(encoding="utf-8")
    try:
        _write(place, sound.replace(mutation.snippet, mutation.becomes), turn)
        code = run_tests(checking(mutation, root), root)
    except subprocess.TimeoutExpired:
        return "the tests did not end"
    finally:
        _write(place, sound, turn + 1)
    if code < 0:  # a signal: a planted error of memory ends the tests, which nobody overlooks
        return "caught"
    return {PASSED: "survived", FAILED: "caught"}.get(code, f"pytest ended with {code}")


def _write(place: Path, text: str, turn: int) -> None:
    """Write with a time of its own: Python and numba tell by it that what they compiled is stale."""
    place.write_text(text, encoding="utf-8")
    stamp = time.time() + 2 * turn
    os.utime(place, (stamp, stamp))


def chosen_by(words: list[str]) -> list[Mutation]:
    """The mutations that the command line asks for; neighbours in the list share tests, so slices are cut."""
    if words[:1] == ["--slice"]:
        part, parts = map(int, words[1].split("/"))
        ends = [len(MUTATIONS) * i // parts for i in (part - 1, part)]
        return MUTATIONS[slice(*ends)]
    return [m for m in MUTATIONS if not words or any(word in m.name for word in words)]


def main(words: list[str]) -> int:
    """Plant the chosen mutations; 0 if every one is caught."""
    chosen = chosen_by(words)
    missed = []
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name in COPIED:
            source, target = ROOT / name, root / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, target)  # with what is compiled already: only mutated files compile anew
        needed = sorted({test for mutation in chosen for test in checking(mutation, root)})
        if run_tests(needed, root) != PASSED:
            print("the tests fail without any planted error: nothing can be learned")
            return 1
        for turn, mutation in enumerate(chosen):
            start = time.monotonic()
            outcome = plant(mutation, root, 2 * turn)
            print(f"{outcome:10} {time.monotonic() - start:5.0f} s  {mutation.name}", flush=True)
            if outcome != "caught":
                missed.append(mutation.name)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} planted errors were caught")
    for name in missed:
        print(f"  not caught: {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
