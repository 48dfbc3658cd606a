"""The choices that options offer, read off the registries they come from."""

from __future__ import annotations

from enum import StrEnum

from pairveil.audit.targets import TARGETS
from pairveil.graph.selections import DESIGNS, SELECTIONS
from pairveil.release.formats import FORMATS

SelectName = StrEnum("SelectName", {name: name for name in SELECTIONS})  # type: ignore[misc]
DesignName = StrEnum("DesignName", {name: name for name in DESIGNS})  # type: ignore[misc]
TargetName = StrEnum("TargetName", {name: name for name in TARGETS})  # type: ignore[misc]
FormatName = StrEnum("FormatName", {name: name for name in FORMATS})  # type: ignore[misc]
