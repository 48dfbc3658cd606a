"""A privacy budget across fits: charged before noise is drawn, never forgotten, never refunded.

The file is replaced whole (`pairveil.files`) under a file lock, and every spend reads it again inside
the lock: concurrent processes see each other's spends, and a kill at any moment leaves either the old
or the new ledger. It is JSON with a checksum, written in one way and read strictly: whatever is unexpected is
an error, because a ledger that is misread would be a fresh budget.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, SoftFileLock, Timeout
from msgspec import UNSET, Struct
from msgspec.structs import asdict

from pairveil.errors import BudgetError, InputError, WaitWarning, warn
from pairveil.files import CannotWrite, check_file, write_file
from pairveil.foreign import decode, read_json
from pairveil.privacy.compose import Part, check_adjacency, check_delta
from pairveil.privacy.events import (
    Event,
    StoredEvent,
    UnitCost,
    check_events,
    check_kappa,
    event_from_dict,
    larger,
)
from pairveil.privacy.profile import best_guess_of_parts, epsilon_of_parts
from pairveil.privacy.units import (
    SINGLE,
    UNITS,
    UNITS_OF_CHOICES,
    UNNAMED,
    Adjacency,
    Unit,
    float_at_most,
    round_up,
)
from pairveil.records.kinds import Cost, CostFields

# ---- what a ledger keeps of one spend ------------------------------------------------------------


class EntryFields(Struct, forbid_unknown_fields=True, kw_only=True):
    """An entry as the file has it; versions 1 and 2 do not say what a unit means."""

    events: list[StoredEvent]
    kappas: dict[str, int | CostFields | list[CostFields]]
    note: str
    delta_slack: float
    time: str
    graph: str | None
    checkpoint: Any = UNSET
    meanings: dict[str, str] | None = None


@dataclass(frozen=True)
class LedgerEntry:
    """One spend: what was released, and what a unit can move of it (kappa, where records are pairs).

    ``checkpoint`` is there if the fit can be resumed: the name of its checkpoint, and a digest of that
    file up to the last answer that was used (docs/theory/guarantee.md says why).

    ``meanings`` says what each unit means, `SINGLE` where it is not listed. None: a ledger of version 1 or 2
    did not keep it.
    """

    events: tuple[Event, ...]
    kappas: Mapping[str, UnitCost]
    note: str
    delta_slack: float
    time: str
    graph: str | None = None
    checkpoint: tuple[str, str] | None = None
    meanings: Mapping[str, str] | None = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Of every unit, whichever is counted now: an entry that a later charge cannot be composed with
        # would lock the ledger for good.
        for group in self.kappas.values():
            if isinstance(group, tuple) and (
                len(group) != len(self.events) or not all(isinstance(one, Cost) for one in group)
            ):
                raise InputError("a unit whose costs differ by event needs one cost for each event")

    def meaning(self, unit: str) -> str | None:
        """What a unit means here; None where it is not known."""
        return None if self.meanings is None else self.meanings.get(unit, SINGLE)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON-able data."""
        data = {
            "events": [event.to_dict() for event in self.events],
            "kappas": {unit: _plain(group) for unit, group in self.kappas.items()},
            "note": self.note,
            "delta_slack": self.delta_slack,
            "time": self.time,
            "graph": self.graph,
            "meanings": None if self.meanings is None else dict(self.meanings),
        }
        if self.checkpoint is not None:
            data["checkpoint"] = list(self.checkpoint)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], title: str = "an entry") -> LedgerEntry:
        """Rebuild an entry, strictly."""
        found: EntryFields = decode(data, EntryFields, title)
        return cls(
            events=tuple(event_from_dict(event) for event in data["events"]),
            kappas={check_unit(unit): _unit_cost(kappa) for unit, kappa in data["kappas"].items()},
            note=found.note,
            delta_slack=check_delta(found.delta_slack),
            time=found.time,
            graph=found.graph,
            checkpoint=_checkpoint(found.checkpoint),
            meanings=_check_meanings(found.meanings),
        )


def check_unit(unit: object) -> Unit:
    """Refuse what is no unit."""
    known = (*UNITS, *UNITS_OF_CHOICES)
    if unit not in known:
        raise InputError(f"unit must be one of {', '.join(known)}")
    return unit  # type: ignore[return-value]


def _check_meanings(meanings: Mapping[Any, Any] | None) -> dict[str, str] | None:
    """Refuse meanings of what is no unit."""
    if meanings is None:
        return None
    return {check_unit(unit): str(meaning) for unit, meaning in meanings.items()}


def _plain(kappa: UnitCost) -> Any:
    """What a unit can move as JSON-able data."""
    if isinstance(kappa, tuple):
        return [cost.to_dict() for cost in kappa]
    return kappa.to_dict() if isinstance(kappa, Cost) else kappa


def _unit_cost(data: Any) -> UnitCost:
    """What a unit can move, as given or from JSON."""
    if isinstance(data, Cost | tuple):
        return data
    if isinstance(data, list):
        return tuple(Cost.from_dict(one) for one in data)
    return Cost.from_dict(data) if isinstance(data, Mapping) else check_kappa(data)


def _checkpoint(value: object) -> tuple[str, str] | None:
    if value is UNSET:
        return None
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value)):
        raise InputError("a ledger entry does not say how far its fit has come")
    return value[0], value[1]


# ---- waiting for a ledger that another process is using ------------------------------------------

SAY_AFTER = 3.0
"""Seconds after which a wait is said (a `WaitWarning`; the command line shows it)."""

GIVE_UP_AFTER = 120.0
"""Seconds after which a wait is an error. A spend takes well below a second."""


@contextmanager
def ledger_lock(ledger: Path) -> Iterator[None]:
    """Hold the lock of a ledger file, for reading and writing it. The lock goes when its holder dies.

    On a disk without locks of the operating system (flock) the lock is the lock file itself, and a kill may
    leave it.

    Raises InputError: another process held it all the time, nothing can be written there, or the ledger
    has a second name.
    """
    # A new lock object each time: threads of one process exclude each other too.
    lock = FileLock(f"{ledger}.lock")
    try:
        _acquire(lock, ledger)
        _check_one_name(ledger)
        yield
    except CannotWrite as problem:
        # Not 'name another place': another ledger is a fresh budget for the same people.
        raise InputError(
            f"the ledger at {ledger} cannot be written: {problem.reason}. Put that right and run again; do "
            "not start another ledger for the same people, it would not know what was spent from this one"
        ) from None
    finally:
        lock.release()


def _check_one_name(ledger: Path) -> None:
    """A write replaces the file under one name: under another the old entries would stay, for ever."""
    if ledger.exists() and ledger.stat().st_nlink > 1:
        raise InputError(
            f"the ledger at {ledger} has a second name on its disk (a hard link), which would keep a budget "
            "of its own from the next charge on: remove the other name, or use a symbolic link"
        )


def _acquire(lock: FileLock, ledger: Path) -> None:
    try:
        try:
            lock.acquire(timeout=SAY_AFTER)
        except Timeout:
            check_file(lock.lock_file)  # a lock that cannot be written is not obtained either
            warn(
                f"another process is using the ledger at {ledger}; waiting for it, at most "
                f"{GIVE_UP_AFTER:g} seconds",
                WaitWarning,
            )
            lock.acquire(timeout=max(0.0, GIVE_UP_AFTER - SAY_AFTER))
    except Timeout:
        # filelock turns a lock into a soft one where there is no flock.
        left = (
            "if there is none, a killed run has left the lock file, because this disk has no locks (flock): "
            "then remove it"
            if isinstance(lock, SoftFileLock)
            else "the lock file itself may stay"
        )
        raise InputError(
            f"another process has held {lock.lock_file} for {GIVE_UP_AFTER:g} seconds, so nothing was "
            "spent. Look for another pairveil that uses this ledger (a stopped or stuck one holds it "
            f"too), end it and try again; {left}"
        ) from None
    except OSError as error:
        raise InputError(
            f"the ledger at {ledger} cannot be locked: {error.strerror or type(error).__name__}"
        ) from None


# ---- a ledger as a file --------------------------------------------------------------------------

_FORMAT = "pairveil-ledger"
_VERSION = 3
_WITHOUT_MEANINGS = (1, 2)
"""Versions whose entries do not say what a unit means."""

MAX_BYTES = 64 * 2**20
"""An entry takes about a kilobyte: room for fifty thousand fits."""


class BudgetFields(Struct, forbid_unknown_fields=True):
    """A budget as the file has it."""

    epsilon: float
    delta: float
    unit: str
    adjacency: str


class LedgerFields(Struct, forbid_unknown_fields=True):
    """A ledger as the file has it."""

    format: str
    version: int
    budget: BudgetFields
    entries: list[dict[str, Any]]
    sha256: str


def ledger_text(budget: Mapping[str, Any], entries: Iterable[LedgerEntry]) -> str:
    """The text of a ledger's file."""
    body = {
        "format": _FORMAT,
        "version": _VERSION,
        "budget": dict(budget),
        "entries": [entry.to_dict() for entry in entries],
    }
    sealed = {**body, "sha256": digest_of_ledger(body)}
    return json.dumps(sealed, indent=1, allow_nan=False) + "\n"


def digest_of_ledger(body: Mapping[str, Any]) -> str:
    """Return a checksum against damage and careless edits (it is no signature)."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def read_ledger(path: Path) -> tuple[dict[str, Any], tuple[LedgerEntry, ...]]:
    """Read a ledger file strictly: anything unexpected is an error."""
    if not path.exists():
        raise InputError(f"the ledger at {path} has vanished; restore it from a backup")
    title = f"the ledger at {path}"
    data = read_json(path, title, MAX_BYTES)
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise InputError(f"{path} is not a pairveil ledger")
    version = data.get("version")
    if isinstance(version, bool) or version not in (*_WITHOUT_MEANINGS, _VERSION):
        raise InputError(f"{title} was written by another version of pairveil")
    file: LedgerFields = decode(data, LedgerFields, title)
    if file.sha256 != digest_of_ledger({key: data[key] for key in data if key != "sha256"}):
        raise InputError(f"{title} was changed or damaged: its checksum is wrong")
    entries = tuple(LedgerEntry.from_dict(one, f"an entry of {title}") for one in data["entries"])
    if version == 1 and not all(isinstance(k, int) for one in entries for k in one.kappas.values()):
        raise InputError(
            f"{title} states what version 1 did not know"
        )  # records that are not pairs
    if any(("meanings" in one) == (version in _WITHOUT_MEANINGS) for one in data["entries"]):
        raise InputError(f"{title} is none of its version: what units mean")
    return asdict(file.budget), entries


# ---- the ledger ----------------------------------------------------------------------------------


def _chains_cross(entries: tuple[LedgerEntry, ...]) -> bool:
    """Whether chains of pairs may run from one release into another.

    Within one release a relationship holds b2 of its pairs. Over releases with different pairs the pairs
    that tie two people together can be taken at one of the two, so in each release they are at most
    that person's pairs: the kappa of 'person' (docs/theory/guarantee.md, 'Several releases').
    """
    graphs = {entry.graph for entry in entries}
    return len(entries) > 1 and (None in graphs or len(graphs) > 1)


def _check_same_meaning(entries: tuple[LedgerEntry, ...], unit: Unit) -> None:
    """Refuse to add up releases of which a unit means different things.

    A sum is a bound for one meaning if each release counted the unit's cost for it. Releases that state the
    same meaning did; a column without names of people is nobody's but its own.

    Entries of versions 1 and 2 do not state any. Theirs was single people, everybody who shares a value, or
    all records of an entity. In each case the cost is the largest over sets of ids of which each id is in
    one, so it covers the cost of any single id, and that of two ids for a relationship. So they go with
    `SINGLE` and with each other, for single people, and with nothing that promises more. (One may be a
    clustering of public points: its release said that the points' features are not protected.)

    A sum for 'relationship' that counts by the cost of 'person' asks for the meaning of 'relationship' only:
    of the pairs at one of the two people a release holds at most that person's, whom 'person' covers in every
    meaning.
    """
    found = {entry.meaning(unit) for entry in entries}
    alike = len(found) == 1 or found == {None, SINGLE}
    if len(entries) > 1 and not (alike and UNNAMED not in found):
        said = " and ".join(sorted(_in_words(meaning) for meaning in found))
        raise InputError(
            f"the releases of this ledger mean different things by unit '{unit}' ({said}), so their costs do "
            "not add up, and nothing was spent: say the same of each (together=, entity_records=; ids where "
            "people change together), or give each meaning a ledger of its own"
        )


def _in_words(meaning: str | None) -> str:
    """A meaning for people."""
    if meaning is None:
        return "not stated by an older version"
    if meaning == UNNAMED:
        return "people who change together, without ids"
    kind, _, which = meaning.partition(" ")
    if kind == "together":
        return f"people who change together by column {which[:8]}"
    return f"one person of at most {which} records" if kind == "entity" else meaning


def _place_of(entries: Sequence[LedgerEntry], name: str) -> int | None:
    """Where the fit with a checkpoint of this name was charged."""
    places = (i for i, e in enumerate(entries) if e.checkpoint and e.checkpoint[0] == name)
    return next(places, None)


class PrivacyLedger:
    """A budget that several fits share.

    Parameters
    ----------
    epsilon, delta : float
        The budget for everything ever charged.
    path : path, optional
        JSON file that keeps the ledger; made if it does not exist, and if it does, its budget must
        be this one. Without a path the ledger lives in the memory of one process: it cannot be sent to
        another one, and a fork's copy of it refuses.
    unit : {"relationship", "person", "pair"}
        Whom the budget protects.
    adjacency : {"zero-out", "replace"}
        Against which comparison.

    Notes
    -----
    A copy is the same ledger: ``sklearn.base.clone`` and ``copy.deepcopy`` do not refill a budget.

    Examples
    --------
    >>> from pairveil.privacy.events import GaussianEvent
    >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
    >>> fit = [GaussianEvent(noise_multiplier=60.0, steps=100)]
    >>> kappas = {"relationship": 1, "person": 2}
    >>> round(ledger.spend(fit, kappas, graph="survey of May"), 2)
    0.59
    >>> round(ledger.spend(fit, kappas, graph="survey of May"), 2)
    0.87
    >>> ledger.spend(fit, kappas, graph="survey of June")
    Traceback (most recent call last):
    ...
    pairveil.errors.BudgetError: this would spend epsilon 2.34... of a budget of 1 ...
    >>> len(ledger.entries)
    2
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        path: str | os.PathLike[str] | None = None,
        unit: Unit = "relationship",
        adjacency: Adjacency = "zero-out",
    ) -> None:
        if isinstance(epsilon, bool) or not (math.isfinite(epsilon) and epsilon > 0.0):
            raise InputError("a ledger's epsilon must be finite and greater than 0")
        self.epsilon = float_at_most(epsilon)
        self.delta = float_at_most(check_delta(delta))
        self.unit: Unit = check_unit(unit)
        self.adjacency: Adjacency = check_adjacency(adjacency)
        self.path = None if path is None else Path(path).resolve()
        self._mutex = threading.Lock()
        self._process = os.getpid()
        self._entries: tuple[LedgerEntry, ...] = ()
        if self.path is not None:
            self._create_or_join()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PrivacyLedger:
        """Open an existing ledger file with the budget it was made with."""
        file = Path(path).resolve()
        if not file.exists():
            raise InputError(f"there is no ledger at {file}")
        return cls(path=file, **read_ledger(file)[0])

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """Every spend so far, read from the file when there is one."""
        if self.path is not None:
            return self._load()
        self._check_process()
        return self._entries

    def _check_process(self) -> None:
        """Refuse a ledger in memory that a fork has copied: each copy would have the whole budget."""
        if os.getpid() != self._process:
            raise InputError(
                "a PrivacyLedger in memory belongs to the process that made it, and this is another one, "
                "whose charges the first would never see: give it a file with path=..."
            )

    def spent(self, unit: Unit | None = None, adjacency: Adjacency | None = None) -> float:
        """Return the composed epsilon of all entries at the ledger's delta.

        Parameters
        ----------
        unit, adjacency : optional
            Another unit or adjacency than the budget's; every entry must then have stated its
            kappa for that unit.
        """
        return self.compose(self.entries, unit, adjacency)

    @property
    def remaining(self) -> float:
        """Budget epsilon minus what is spent; composition is sublinear, so often more fits in."""
        return max(0.0, self.epsilon - self.spent())

    def spend(
        self,
        events: Iterable[Event],
        kappas: Mapping[Unit, UnitCost] | int,
        note: str = "",
        *,
        delta_slack: float = 0.0,
        graph: str | None = None,
        checkpoint: tuple[str, str] | None = None,
        meanings: Mapping[str, str] | None = None,
    ) -> float:
        """Charge a release, durably, before its noise is drawn.

        Parameters
        ----------
        events : iterable of events
            What is about to be released.
        kappas : mapping from unit to kappa, or int
            How many of this release's pairs each unit holds; an int is for the ledger's own unit. A
            ledger of unit 'relationship' needs that of 'person' as well: two people may be tied by
            pairs of several releases, and then a relationship holds as many pairs as a person does.
        note : str
            Anything that helps to recognise the entry. It is stored in the clear.
        delta_slack : float, default 0.0
            What discrete noise takes off delta (`pairveil.privacy.grid.delta_slack`).
        graph : str, optional
            A name for who is paired with whom in this release; releases with the same name are known
            to use the very same pairs.
        checkpoint : (str, str), optional
            Name and digest of the checkpoint of a fit that can be resumed; see `advance`.
        meanings : mapping from unit to str, optional
            What a unit stands for in ``kappas`` where that is not one person, or two: see
            `pairveil.privacy.units.meanings_of`.

        Returns
        -------
        float
            The composed epsilon of the ledger, this release included.

        Raises
        ------
        BudgetError
            When the budget does not allow it; nothing is recorded then.
        InputError
            A checkpoint of this name was charged for already, or the ledger's unit means something else in
            the releases before; nothing is recorded then.
        """
        entry = self._entry(events, kappas, delta_slack, graph, meanings)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = replace(entry, note=str(note), time=now, checkpoint=checkpoint)
        with self._locked():
            before = self.entries
            if checkpoint is not None and _place_of(before, checkpoint[0]) is not None:
                raise InputError("this checkpoint was charged for already; nothing was spent")
            entries = (*before, entry)
            total = self._within_budget(entries)
            self._store(entries)
        return total

    def quote(
        self,
        events: Iterable[Event],
        kappas: Mapping[Unit, UnitCost] | int,
        *,
        delta_slack: float = 0.0,
        graph: str | None = None,
        meanings: Mapping[str, str] | None = None,
    ) -> float:
        """Return what `spend` would, or refuse as it would; charges nothing.

        Examples
        --------
        >>> from pairveil.privacy.events import LaplaceEvent
        >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-5, unit="person")
        >>> ledger.quote([LaplaceEvent(5.0)], kappas=1), len(ledger.entries)
        (0.2, 0)
        """
        entry = self._entry(events, kappas, delta_slack, graph, meanings)
        return self._within_budget((*self.entries, entry))

    def after(self, cost: Mapping[str, Any]) -> float:
        """What `quote` would return if there were no budget: all releases together, this one included."""
        return self.compose((*self.entries, self._of(cost)))

    def why_more(self, cost: Mapping[str, Any]) -> str:
        """Why a release charges more than it states, where it does; else nothing."""
        return self._across((*self.entries, self._of(cost)))

    def _of(self, cost: Mapping[str, Any]) -> LedgerEntry:
        return self._entry(**({"delta_slack": 0.0, "graph": None, "meanings": None} | dict(cost)))

    def _across(self, entries: tuple[LedgerEntry, ...]) -> str:
        if self.unit != "relationship" or not _chains_cross(entries):
            return ""
        return (
            " These pairs are not those of an earlier release, so a relationship may run through both and "
            "counts as a person does: the same pairs again would cost less, or a half of them each (--half)."
        )

    def _entry(
        self,
        events: Iterable[Event],
        kappas: Mapping[Unit, UnitCost] | int,
        delta_slack: float,
        graph: str | None,
        meanings: Mapping[str, str] | None,
    ) -> LedgerEntry:
        """What would be charged; refuses what this or a later charge could not be composed with."""
        given = kappas if isinstance(kappas, Mapping) else {self.unit: kappas}
        by_unit: dict[str, UnitCost] = {
            check_unit(unit): _unit_cost(one) for unit, one in given.items()
        }
        needed = ("relationship", "person") if self.unit == "relationship" else (self.unit,)
        if not all(unit in by_unit for unit in needed):
            wanted = ", ".join(f"'{unit}': ..." for unit in needed)
            raise InputError(
                f"this ledger protects unit '{self.unit}': state kappas={{{wanted}}}"
                + (
                    ", because a relationship can run through pairs of several releases, and then it holds "
                    "as many pairs of each as a person has there"
                    if self.unit == "relationship"
                    else ""
                )
            )
        slack, meant = check_delta(delta_slack), _check_meanings(meanings or {})
        return LedgerEntry(check_events(events), by_unit, "", slack, "", graph, meanings=meant)

    def _within_budget(self, entries: tuple[LedgerEntry, ...]) -> float:
        """The epsilon of some entries together, if the budget allows it."""
        total = self.compose(entries)
        if not total <= self.epsilon:
            before = (
                f" {round_up(self.compose(entries[:-1]))} is spent before." if entries[1:] else ""
            )
            before += self._across(entries)
            raise BudgetError(
                f"this would spend epsilon {round_up(total)} of a budget of {self.epsilon:g} at delta "
                f"{self.delta:g} (unit '{self.unit}', {self.adjacency}); nothing was spent.{before} A "
                "smaller epsilon may still fit: of a fit `pairveil plan --ledger FILE` says which"
            )
        return total

    def advance(self, name: str, known: str, reached: str) -> None:
        """Record, durably, how far a charged fit has come; costs nothing.

        Of two runs that resume from the same place one gets through and the other is refused: a charge pays
        for one sequence of answers. ``known`` and ``reached`` are digests of the fit's checkpoint as this
        ledger must know it, and as it is now.
        """
        with self._locked():
            entries = list(self.entries)
            place = _place_of(entries, name)
            if place is None or entries[place].checkpoint != (name, known):
                raise InputError(
                    "another run has resumed from this checkpoint or a copy of it: this one stops, "
                    "and the answer it drew last is not used"
                )
            if reached != known:
                entries[place] = replace(entries[place], checkpoint=(name, reached))
                self._store(tuple(entries))

    def compose(
        self,
        entries: Iterable[LedgerEntry],
        unit: Unit | None = None,
        adjacency: Adjacency | None = None,
    ) -> float:
        """Return the epsilon of some entries together, at the ledger's delta.

        Infinite for unit 'relationship' where chains of pairs may run across entries of which one does
        not state its kappa for 'person': nothing is known then of how many pairs such a chain holds.

        Raises InputError: the entries do not mean the same by the unit, or one does not state its kappa.
        """
        parts, slack = self._parts(tuple(entries), check_unit(unit or self.unit))
        if parts is None or (slack > 0.0 and slack >= self.delta):
            return math.inf
        found = adjacency or self.adjacency
        return epsilon_of_parts(parts, adjacency=found, delta=self.delta - slack)

    def best_guess(self, unit: Unit | None = None) -> float:
        """How often the best possible guesser between two contents of a unit is right, at most.

        As `Certificate.best_guess`, for someone who sees everything that was ever charged here; 1 where
        nothing can be promised for all of it together.

        Examples
        --------
        >>> from pairveil.privacy.events import GaussianEvent
        >>> ledger = PrivacyLedger(epsilon=3.0, delta=1e-5, unit="person")
        >>> _ = ledger.spend([GaussianEvent(8.0)], kappas=1), ledger.spend([GaussianEvent(8.0)], kappas=1)
        >>> round(ledger.best_guess(), 3)  # Phi(sqrt(2) / 8)
        0.57
        """
        parts, slack = self._parts(self.entries, check_unit(unit or self.unit))
        return 1.0 if parts is None else best_guess_of_parts(parts, delta_slack=slack)

    def _parts(
        self, entries: tuple[LedgerEntry, ...], unit: Unit
    ) -> tuple[list[Part] | None, float]:
        """What a unit can move of each entry (None: nothing is known of it), and their slack together."""
        if not all(unit in entry.kappas for entry in entries):
            raise InputError(f"an entry of this ledger does not state its kappa for unit '{unit}'")
        _check_same_meaning(entries, unit)
        slack = math.fsum(entry.delta_slack for entry in entries)
        counted: Unit = "person" if unit == "relationship" and _chains_cross(entries) else unit
        if not all(counted in entry.kappas for entry in entries if entry.events):
            return None, slack  # a ledger of another unit, or a file of version 0.1
        parts: list[Part] = [
            (entry.events, larger(entry.kappas[unit], entry.kappas.get(counted, 1)))
            for entry in entries
        ]
        return parts, slack

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self.path is None:
            self._check_process()  # first: the lock's holder may be a thread that a fork does not have
            with self._mutex:
                yield
        else:
            with ledger_lock(self.path):
                yield

    def _budget(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in BudgetFields.__struct_fields__}

    def _create_or_join(self) -> None:
        assert self.path is not None
        if not self.path.parent.is_dir():
            raise InputError(f"the folder of the ledger does not exist: {self.path.parent}")
        with self._locked():
            if self.path.exists():
                self._load()
            else:
                self._store(())

    def _load(self) -> tuple[LedgerEntry, ...]:
        assert self.path is not None
        budget, entries = read_ledger(self.path)
        if budget != self._budget():
            raise InputError(
                f"the ledger at {self.path} has another budget; open it with PrivacyLedger.open"
            )
        return entries

    def _store(self, entries: tuple[LedgerEntry, ...]) -> None:
        if self.path is None:
            self._entries = entries
            return
        write_file(self.path, ledger_text(self._budget(), entries))

    def __copy__(self) -> PrivacyLedger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise InputError(
                "a PrivacyLedger in memory cannot be sent to another process, where it would start "
                "again from zero: give it a file with path=..."
            )
        return PrivacyLedger.open, (self.path,)

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else f"path={str(self.path)!r}"
        return (
            f"PrivacyLedger(epsilon={self.epsilon:g}, delta={self.delta:g}, unit={self.unit!r}, "
            f"adjacency={self.adjacency!r}, {where})"
        )
