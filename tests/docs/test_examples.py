"""Every example runs as it stands, in an empty folder, without a warning, and says what it should."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from pages import ROOT

SAYS = {
    "patients.py": r"397 pairs, kappa 1 .*certificate holds: True.*epsilon (1\.000|0\.9\d+)",
    "record_linkage.py": r"kappa 1, certificate holds: True.*name .*bits.*match from .* spent 3\.",
    "faces.py": r"count images, not people.*at most 3 pairs.*epsilon (4\.00|3\.9\d)",
    "budget.py": r"fit 1 done: epsilon 0\.7.*fit 2 done: epsilon 1\.0.*fit 3 refused.*cost 2\.",
    "any_optimiser.py": r"0\.9\d without privacy, 0\.8[4-9] at epsilon 4.*holds: True"
    r".*audit: consistent.*moves (1\.000|0\.99\d).*the plan allows no further answer",
    "choosing_pairs.py": r"all +20\d\d +11 .*forest +\d+ +1 .*paths +\d+ +1 .*matching +\d+ +1 ",
    "substitution.py": r"opposite vectors +0\.7032\n.*replace +0\.7032\n.* 0\.66.*il +2\.84.*PLD +2\.84",
    "service.py": r"distance of two people: \d\.\d+.*component,age,bmi,pressure\nmetric\.sql",
}


def test_every_example_is_tested() -> None:
    assert set(SAYS) == {path.name for path in (ROOT / "examples").glob("*.py")}


@pytest.mark.parametrize("example", sorted(SAYS))
def test_example(
    example: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / example), run_name="__main__")
    said = capsys.readouterr().out
    assert re.search(SAYS[example], said, re.S), said
