"""A studio on a folder of its own, and a client that brought the token."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # studio_tools

pytest.importorskip(
    "starlette", reason="starlette is not installed: pip install 'pairveil[studio]'"
)
pytest.importorskip("httpx", reason="httpx is not installed")


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    from studio_tools import write_tables

    return write_tables(tmp_path)


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
