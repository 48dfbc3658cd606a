"""The notebooks run from top to bottom, in an empty folder, without a warning."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
import pytest
from pages import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run_in_order(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    namespace: dict[str, object] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"]  # kept without: they would be of another run
            exec(compile("".join(cell["source"]), f"{path.name}:{cell['id']}", "exec"), namespace)


def test_there_are_two() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["choosing-epsilon", "first-release"]
