"""Records: one container for pairs, groups, tuples and people, of which the sets by those names are faces.

Who is in a record is public (`members`), what is said of them is private (`content`), and so are people's
`features`, which are stored once. What tells kinds apart is a row of `pairveil.records.kinds`; a face checks
what users give, and says under which names they find it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from inspect import signature
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np

from pairveil.errors import InputError
from pairveil.records.canonical import (
    as_index,
    canonical_records,
    order_of_ids,
    ranks,
    say_contrary,
    say_merged,
)
from pairveil.records.identity import say_similar, value_numbers
from pairveil.records.kinds import RecordKind
from pairveil.records.tables import as_ids, refuse_repeated
from pairveil.records.validation import check_features, row_blocks


def face(attribute: str, says: str) -> Any:
    """An attribute under the name that a kind of records has for it."""
    return property(attrgetter(attribute), doc=says)


class Records:
    """Frozen records over a table of people."""

    features: (
        Any  # a row a person; or a row a record, where the kind says that records have their own
    )
    members: Any = (
        None  # (K, m) rows of each record's people, -1 for nobody; None: people are records
    )
    content: Any = None  # (K,) or (K, c): what is said of each record
    ids: np.ndarray | None = None  # what the people are called outside
    feature_names: tuple[str, ...] | None = None
    together: np.ndarray | None = None  # numbers of the values shared by people who change together

    record_kind: ClassVar[RecordKind]
    """What is known of records of this kind."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    @classmethod
    def checked_before(cls, **contents: Any) -> Self:
        """A set whose contents were checked elsewhere; what is not named has its default."""
        made = object.__new__(cls)
        made._set(**contents)
        return made

    def _set(self, **contents: Any) -> None:
        vars(self).update(contents)

    def _changed(self, **contents: Any) -> Self:
        """The same with other contents, which must have been checked."""
        return self.checked_before(**{**vars(self), **contents})

    def replace(self, **arguments: Any) -> Self:
        """The same with other arguments of the constructor, which checks them."""
        given = {name: getattr(self, name) for name in signature(type(self)).parameters}
        return type(self)(**{**given, **arguments})

    def _set_people(self, features: Any, ids: Any, feature_names: Any) -> None:
        """Check the table of people, and who they are."""
        names = None if feature_names is None else tuple(map(str, feature_names))
        self._set(features=check_features(features, names), feature_names=names)
        if ids is None:
            return
        found, n_people = as_ids(ids), self.n_people
        if len(found) != n_people:
            raise InputError(f"{n_people} people need {n_people} ids, one each")
        # Of one person in two rows, each row would count as a person: kappa would be too small.
        refuse_repeated(found)
        say_similar("the people", found)
        self._set(ids=found)

    @property
    def kind(self) -> str:
        """Of records, for what a protected unit costs."""
        return self.record_kind.name

    @property
    def n_people(self) -> int:
        """Rows of the features."""
        return int(self.features.shape[0])

    @property
    def n_features(self) -> int:
        """Columns of the features."""
        return int(self.features.shape[1])

    @property
    def n_records(self) -> int:
        """Records that a fit sums over."""
        return self.n_people if self.members is None else len(self.members)

    @property
    def size(self) -> int:
        """Places for people in a record."""
        return 1 if self.members is None else int(self.members.shape[1])

    def contents(self, rows: Any = None) -> tuple[Any, Any]:
        """What a statistic sees of some records: a float64 row each (by default their own), and contents."""
        chosen = slice(None) if rows is None else rows
        return self.features[chosen].astype(np.float64, copy=False), self.content[chosen]

    def blocks(self, size: int) -> Iterator[slice]:
        """Slices of at most ``size`` records that cover all of them in order."""
        if size < 1:
            raise InputError(f"a block holds at least one {self.record_kind.one}")
        return row_blocks(self.n_records, size)

    def with_features(self, features: Any) -> Self:
        """The same records of people with other features, which must have been checked."""
        return self._changed(features=features)

    def subset(self, indices: Any) -> Self:
        """The records at ``indices``; features of people are shared."""
        changed = {"content": None if self.content is None else self.content[indices]}
        if self.members is not None:
            changed["members"] = self.members[indices]
        elif self.ids is not None:
            changed["ids"] = self.ids[indices]
        if self.record_kind.own_rows:
            changed["features"] = self.features[indices]
        found = self._changed(**changed)
        if found.n_records == 0:
            raise InputError(f"there are no {self.kind}")
        return found

    def emptied(self, null: np.ndarray) -> Self:
        """The same records, of which some are null: they stay in their place and contribute nothing."""
        if self.content is None:
            raise InputError(
                f"{self.kind} without {self.record_kind.said} contribute nothing as they are"
            )
        content = self.content.copy()
        content[null] = self.record_kind.null
        return self._changed(content=content)

    def part(self, rows: slice, *, own_people: bool = True) -> Self:
        """Some records, with the features of their own people only, by default: what another machine sums."""
        taken: dict[str, Any] = {
            "content": np.array(self.content[rows]),
            "ids": None,
            "together": None,
        }
        if self.record_kind.own_rows:
            taken["features"] = self.features[rows]
        if self.members is not None:
            taken["members"] = members = np.array(self.members[rows])
            if own_people and not self.record_kind.own_rows:
                people, places = np.unique(members, return_inverse=True)
                vacant = int(people[0] < 0)
                taken["members"] = (places.reshape(members.shape) - vacant).astype(members.dtype)
                taken["features"] = self.features[people[vacant:]]
        return self._changed(**taken)

    def canonical(self) -> tuple[Self, np.ndarray | None]:
        """The same records in canonical order (`pairveil.records.canonical`), and where each was first."""
        people = order_of_ids(self.ids)
        if self.members is None:
            return (self if people is None else self.subset(people)), people
        found = canonical_records(
            as_index(self.members), self.content, ranks(people), self.record_kind
        )
        if found.positions is None:
            return self, None
        say_merged(found.n_repeated, kind=self.record_kind)
        say_contrary(found.n_contrary, kind=self.record_kind)
        moved: dict[str, Any] = {"members": found.members, "content": found.content}
        if people is not None:
            assert self.ids is not None
            moved |= {"features": self.features[people], "ids": self.ids[people]}
            if self.together is not None:  # numbers follow the ids' order too
                moved["together"] = value_numbers(self.together[people], len(people))
        return self._changed(**moved), found.positions

    def topology(self) -> bytes:
        """Names what is public of the records: who is in which of them, or how many people there are."""
        shape = () if self.members is None else self.members.shape
        digest = hashlib.sha256(f"{self.kind} {self.n_people} {shape}".encode())
        if self.members is not None:
            digest.update(np.ascontiguousarray(self.members, dtype=np.int64).data)
        return digest.digest()
