"""The verdict on a release, as data: may it be used, and what can be guessed from it.

Page, studio and terminal print these sentences; nowhere else are they written. Bounds are rounded up, what
may be open is rounded down. docs/theory/accounting.md proves the bounds, docs/threat-model.md says what
they do not cover.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pairveil.errors import InputError
from pairveil.privacy.units import PEOPLE_TOGETHER, UNFIT, VERDICT, Unit

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate
    from pairveil.privacy.ledger import PrivacyLedger

WEAK = 0.99  # whoever guesses right more often than this is as good as sure


@dataclass(frozen=True)
class Releases:
    """What a ledger says of all releases that were charged to it, one after the other."""

    count: int
    # Of each unit, how often the best guesser who sees all of them is right, at most; None where they
    # have no promise in common
    best_guess: Mapping[str, float | None]


def releases_of(ledger: PrivacyLedger, planned: Mapping[str, Any] | None = None) -> Releases:
    """All releases of a ledger together."""
    if planned is not None:
        budget = (ledger.epsilon, ledger.delta)
        rehearsal = type(ledger)(*budget, unit=ledger.unit, adjacency=ledger.adjacency)
        rehearsal._entries = ledger.entries
        rehearsal.spend(**planned)
        return releases_of(rehearsal)
    entries = ledger.entries
    found: dict[str, float | None] = {}
    for unit in dict.fromkeys(unit for entry in entries for unit in entry.kappas):
        try:
            share = ledger.best_guess(unit)  # type: ignore[arg-type]
        except InputError:  # an entry states nothing of this unit, or means something else by it
            share = 1.0
        found[unit] = share if share <= WEAK else None
    return Releases(len(entries), found)


@dataclass(frozen=True)
class Verdict:
    """Whether a release may be used, and what can be guessed from it."""

    usable: bool
    reasons: tuple[str, ...]  # why it must not be used
    checked: str  # what was checked, in a few words
    # Of each unit, how many of 100 guesses are right at most, all releases of the ledger together; None
    # where nothing is promised. Empty where the release must not be used.
    in_100: Mapping[str, int | None] = field(default_factory=dict)
    releases: int | None = None  # how many releases that counts; None where no ledger is stated
    left_out: int = 0  # records that had an answer and were not used
    # How many of 100 guesses may be right at least for someone who knows those answers: along a minimum
    # cut of all that was given, and other cuts may open more. No bound.
    open_in_100: int | None = None
    headline: str = "Do not use."
    about: Mapping[str, str] = field(default_factory=dict)  # of each unit, what the number means
    # What someone who knows the answers left out may learn; empty where none were
    left_out_means: str = ""
    limits: tuple[str, ...] = ()  # who may learn more, and which releases are counted

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that is said below the headline."""
        said = (*self.about.values(), self.left_out_means, *self.limits)
        return tuple(one for one in said if one)

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if self.usable:
            return self.headline
        return VERDICT["refused"].format("; ".join(self.reasons))


def verdict(
    certificate: Certificate | None,
    *,
    problems: Iterable[str] | None = None,
    failures: Iterable[str] = (),
    releases: Releases | None = None,
    beside: Certificate | None = None,
) -> Verdict:
    """The verdict on a release.

    None for what was learned without noise. ``problems`` are what `Certificate.verify` found (None where it
    was not asked), ``failures`` other checks that failed: of a signature, of the files, of the graph.
    ``releases`` is what the sender's ledger says of all releases together, and ``beside`` the certificate of
    the release together with what was measured for it later.

    Examples
    --------
    >>> from pairveil.privacy.certificate import _example
    >>> print(verdict(_example()).line)
    Do not use, not for release: it was made with a seed, and whoever finds the seed can remove the noise...
    """
    reasons = [*failures]
    if certificate is None:
        reasons.append(VERDICT["no_noise"])
    else:
        found = tuple(problems or ())
        reasons += [VERDICT["not_valid"].format("; ".join(found))] if found else []
        reasons += [UNFIT[why]["remedy"] for why in certificate.unfit()]
        reasons += [one for one in [delta_too_large(certificate)] if one]
    if certificate is None or reasons:
        return Verdict(False, tuple(dict.fromkeys(reasons)), "Do not use")
    shares = {unit: _together(certificate, unit, releases, beside) for unit in _shown(certificate)}
    in_100: dict[str, int | None] = {unit: _rounded_up(share) for unit, share in shares.items()}
    protects = in_100[certificate.unit] is not None
    checked = VERDICT["checked" if protects else "checked_weak"]
    if problems is None:
        checked = VERDICT["not_checked"]
    count = None if releases is None else releases.count
    left_out = certificate.n_pairs_given - certificate.n_pairs_used
    tied = left_out > 0 and "relationship" in shares
    open_in_100 = _open(certificate, shares) if tied else None
    made = Verdict(True, (), checked, in_100, count, max(left_out, 0), open_in_100)
    return replace(
        made,
        headline=_headline(made, certificate),
        about={unit: _about(made, certificate, unit) for unit in in_100},
        left_out_means="" if open_in_100 is None else _left_out(made, certificate),
        limits=(
            certificate.words.limits.format(certificate.words.records),
            *([] if beside is None else [VERDICT["measured"]]),
            _counted(count),
        ),
    )


def delta_too_large(certificate: Certificate) -> str:
    """Why a certificate's delta protects nobody, and which one would; nothing where it is small enough.

    With a delta of 1 over the number of records, showing one of them outright would keep the promise.
    """
    n = max(certificate.n_pairs_used, 1)
    if certificate.delta < 1 / n:
        return ""
    return VERDICT["large_delta"].format(
        delta=certificate.delta, n=n, records=certificate.words.records, smaller=small_delta(n)
    )


def small_delta(n_records: int) -> float:
    """A power of ten that is at most a tenth of 1 over the number of records."""
    return float(f"1e-{math.ceil(math.log10(10 * n_records))}")


def unit_name(certificate: Certificate, unit: str) -> str:
    """What one unit is called."""
    return certificate.words.called.get(unit, unit)


# ---- the numbers --------------------------------------------------------------------------------


def _shown(certificate: Certificate) -> list[Unit]:
    """The units that a person signs for: the two larger ones, and the certified one."""
    return [
        unit
        for unit in certificate.units
        if unit in certificate.units[-2:] or unit == certificate.unit
    ]


def _together(
    certificate: Certificate, unit: Unit, releases: Releases | None, beside: Certificate | None
) -> float:
    """The best guess from all that is known to have been released; 1 where there is no promise for all."""
    parts = [_share(certificate, unit)]
    if beside is not None:
        parts.append(_share(beside, unit))
    if releases is not None and releases.count > 1:
        total = releases.best_guess.get(unit)
        parts.append(1.0 if total is None or beside is not None else total)
    return max(
        parts
    )  # of each part all others are known: together they never say less than one of them


def _share(certificate: Certificate, unit: Unit) -> float:
    if unit not in certificate.units or math.isinf(certificate.epsilons[unit]["replace"]):
        return 1.0
    return certificate.best_guess(unit)


def _rounded_up(share: float) -> int | None:
    return None if share > WEAK else math.ceil(100 * share - 1e-9)


def _open(certificate: Certificate, shares: Mapping[Unit, float]) -> int:
    """What the promise leaves open to someone who knows the answers that were left out, at least."""
    from pairveil.privacy.profile import best_guess_of

    full, group = _full_kappa(certificate), certificate.group_of("relationship")
    if isinstance(group, tuple):
        group = tuple(replace(cost, records=max(full, cost.records)) for cost in group)
    else:
        group = full
    along_a_cut = best_guess_of(certificate._events(), kappa=group)
    return math.floor(100 * max(along_a_cut, shares["relationship"]) + 1e-9)


def _full_kappa(certificate: Certificate) -> int:
    """Kappa of a relationship among all that was given."""
    return max(int(certificate.selection.get("full_graph_relationship_kappa") or 1), 1)


# ---- the sentences ------------------------------------------------------------------------------


def _headline(found: Verdict, certificate: Certificate) -> str:
    called = {unit: unit_name(certificate, unit) for unit in found.in_100}
    bounds = [(called[unit], times) for unit, times in found.in_100.items() if times is not None]
    none = [f"one {called[unit]}" for unit, times in found.in_100.items() if times is None]
    several = f"All {found.releases} releases together: " if (found.releases or 0) > 1 else ""
    if not bounds:
        return f"{several}nothing useful is promised.".capitalize()
    (first, times), *others = bounds
    said = f"{several}{'at' if several else 'At'} most {times} guesses in 100 about one {first} are right"
    said += "".join(f", at most {times} about one {name}" for name, times in others)
    said += f". Nothing is promised about {' or '.join(none)}" if none else ""
    return f"{said}. A coin gets 50."


def _about(found: Verdict, certificate: Certificate, unit: str) -> str:
    guessed = certificate.words.guessed[unit]
    if unit == "person" and PEOPLE_TOGETHER in certificate.public:
        guessed = VERDICT["household"]
    times = found.in_100[unit]
    if times is None:
        none = "about_none_common" if (found.releases or 0) > 1 else "about_none"
        return VERDICT[none].format(guessed=guessed)
    # Answers that were left out can tie more used pairs together than the bound counts.
    tied = unit == "relationship" and found.open_in_100 is not None
    known = VERDICT["knows_used" if tied else "knows_all"]
    return VERDICT["about"].format(guessed=guessed, known=known, times=times)


def _left_out(found: Verdict, certificate: Certificate) -> str:
    records, full = certificate.words.records, _full_kappa(certificate)
    dropped = f"{found.left_out:,} {records if found.left_out > 1 else certificate.words.record}"
    why = VERDICT["left_out_why"].format(full=full, records=records) if full > 1 else ""
    after = VERDICT["left_out_after"] if (found.releases or 0) > 1 else ""
    return VERDICT["left_out"].format(
        dropped=dropped, times=found.open_in_100, after=after, why=why
    )


def _counted(releases: int | None) -> str:
    if releases is None:
        return VERDICT["no_ledger"]
    return VERDICT["first_release"] if releases <= 1 else VERDICT["all_releases"].format(releases)
