"""The choices that options offer, read off the registries they come from."""

from __future__ import annotations

from enum import StrEnum

from pairveil.audit.targets import TARGETS
from pairveil.graph import DESIGNS, SELECTIONS
from pairveil.learners import DEFAULT_LEARNER, LEARNERS
from pairveil.privacy.mechanisms import MECHANISMS, NOISES
from pairveil.release import FORMATS

SelectName = StrEnum("SelectName", {name: name for name in SELECTIONS})  # type: ignore[misc]
DesignName = StrEnum("DesignName", {name: name for name in DESIGNS})  # type: ignore[misc]
NoiseName = StrEnum("NoiseName", {name: name for name in NOISES})  # type: ignore[misc]
LearnerName = StrEnum("LearnerName", {name: name for name in LEARNERS})  # type: ignore[misc]
TargetName = StrEnum("TargetName", {name: name for name in TARGETS})  # type: ignore[misc]
FormatName = StrEnum("FormatName", {name: name for name in FORMATS})  # type: ignore[misc]
LayoutName = StrEnum("LayoutName", "auto table splink dedupe lfw voxceleb links")

AUTO_LAYOUT = LayoutName("auto")
DEFAULT_LEARNER_NAME = LearnerName(DEFAULT_LEARNER)
DEFAULT_NOISE = NoiseName(NOISES[0])


def pure_noises() -> str:
    """Which kinds of noise need no delta, for the help of an option.

    Examples
    --------
    >>> pure_noises()
    'Pure epsilon (no delta): laplace.'
    """
    return f"Pure epsilon (no delta): {', '.join(n for n in NOISES if MECHANISMS[n].is_pure)}."
