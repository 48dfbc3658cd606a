"""What a certificate treats as public, by the kind of records that the fit learned from."""

from __future__ import annotations

from collections.abc import Iterable

_PAIRED = "who is paired with whom, the number of people and of pairs, and which pairs were used"
_TOUCHED = "the records that each unit touches, the clip bound and the noise scale"
_CHOICES = (
    "the items with their features, who the workers are, and between which items each of them chose",
    _TOUCHED,
)

PUBLIC_OF = {
    "pairs": (
        _PAIRED,
        "kappa, the sampling rate, the number of steps, the clip bound and the noise scale",
        "the bound on the features' norm, the margin's rule, and where the learning started",
    ),
    "groups": (
        "who is in which group and paired with whom, the number of people and of groups",
        "the records that each unit touches, the number of steps, the clip bound and the noise scale",
        "the bound on the features' norm, the margin's rule, and where the learning started",
    ),
    "people": (
        "how many people there are, who they are, and the list of classes",
        _TOUCHED,
        "the bound on the features' norm",
    ),
    "tuples": (
        "who is in a tuple with whom, the number of people and of tuples, and which tuples were used",
        "the tuples that each unit touches, the sampling rate, the number of steps, the clip bound and the "
        "noise scale",
        "the bound on the features' norm, the margin, and where the learning started",
    ),
    "counted pairs": (
        _PAIRED,
        "kappa, the clip bound and the noise scale",
        "the columns that pairs are counted by: comparisons and their levels, or the range of scores",
    ),
    "choices": _CHOICES,
    "workers": _CHOICES,
}


def public_of(kinds: Iterable[str]) -> tuple[str, ...]:
    """What a certificate about these kinds of records treats as public, each sentence once.

    Examples
    --------
    >>> public_of(["pairs"]) == PUBLIC_OF["pairs"]
    True
    """
    return tuple(dict.fromkeys(said for kind in kinds for said in PUBLIC_OF[kind]))
