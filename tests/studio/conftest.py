"""A studio on a folder of its own, and a client that brought the token."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # studio_tools

pytest.importorskip(
    "starlette", reason="starlette is not installed: pip install 'pairveil[studio]'"
)
pytest.importorskip("httpx", reason="httpx is not installed")


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    from studio_tools import write_tables

    return write_tables(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="session")
def steps(tmp_path_factory: pytest.TempPathFactory, tables: tuple[Path, Path]) -> dict[str, Path]:
    """Folders of a studio at each step, made once by the real commands: state is a folder."""
    from studio_tools import CHOICE, COLUMNS, SCHEMA, enter, open_client, step, upload

    from pairveil.studio import commands
    from pairveil.studio.project import Project

    kept = tmp_path_factory.mktemp("steps")
    project = Project(kept / "studio", budget=5.0)
    found: dict[str, Path] = {}

    def keep(name: str) -> None:
        found[name] = kept / name
        shutil.copytree(project.folder, found[name])

    with pytest.MonkeyPatch.context() as patch, open_client(project) as client:
        patch.setattr(commands, "EPSILONS", (0.3, 2.0, 4.0))  # each is planned in full
        enter(client)
        for which, file in zip(("people", "pairs"), tables, strict=True):
            assert "problem" not in upload(client, which, file)
        assert "problem" not in upload(client, "public", tables[0].parent / "public.csv")
        page = client.post("/files", data=COLUMNS)
        assert step(page) == "schema", page.text
        keep("schema")
        page = client.post("/schema", data=SCHEMA)
        assert step(page) == "plan", page.text
        keep("plan")
        page = client.post("/plan", data=CHOICE)
        assert step(page) == "confirm", page.text
        keep("confirm")
    return found


@pytest.fixture
def project(tmp_path: Path) -> Any:
    from pairveil.studio.project import Project

    return Project(tmp_path / "studio", budget=5.0)


@pytest.fixture
def client(project: Any) -> Iterator[Any]:
    from studio_tools import enter, open_client

    with open_client(project) as client:
        enter(client)
        yield client


@pytest.fixture
def at(project: Any, steps: dict[str, Path]) -> Callable[[str], None]:
    """Bring the project to a step; its commands name the folder that they were made for."""

    def bring(step: str) -> None:
        shutil.copytree(steps[step], project.folder, dirs_exist_ok=True)

    return bring
