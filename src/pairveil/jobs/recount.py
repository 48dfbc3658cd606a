"""Recounting a certificate's kappa from the public graph, and naming that graph by a salted digest."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from pairveil.errors import InputError
from pairveil.privacy.units import (
    ASSUMED_TOPOLOGY,
    NOISE_SOURCES,
    PEOPLE_TOGETHER,
    UNITS,
    UNKNOWN_TOPOLOGY,
)
from pairveil.records.kinds import KINDS

_MOST_BYTES = 4096
_OF_PAIRS = {name for name, kind in KINDS.items() if kind.on_pairs or kind.holds_pairs}
"""Kinds of records that are made of pairs; a certificate that is recounted has one of them."""


_NOT_PLAIN = "the certificate does not say plainly how many records a person has"


class Recount(NamedTuple):
    """What the public graph says of a certificate."""

    # True: kappa of every unit was counted from the graph, and none is above what is stated. False: one
    # is, or this is another graph. None: of some unit it could not be counted.
    kappa_matches: bool | None
    graph_matches: bool | None  # its digest is the certificate's; None where that was not compared
    unknown: tuple[str, ...]  # units whose kappa was not counted and stays the sender's word
    sentences: list[str]  # what was compared, for people
    problems: list[str]  # what does not agree


def recount(certificate: Any, indexed: Any, salt: bytes | None) -> Recount:
    """Compare a certificate with the public graph of all given pairs; ``salt`` is for its digest."""
    c = certificate
    sentences: list[str] = []
    problems = _other_graph(c, indexed, sentences)
    counted = {} if problems else kappas_of(c, indexed)
    right = []
    for unit in c.units:
        found = counted.get(unit)
        if isinstance(found, str):
            sentences.append(f"kappa of unit '{unit}' was not counted: {found}")
        elif found is not None and found > c.kappas[unit]:
            problems.append(
                f"the used pairs need a kappa of {found} at least for unit '{unit}', and the certificate "
                f"states {c.kappas[unit]}"
            )
        elif found is not None:
            right.append(unit)
    unknown = tuple(unit for unit in c.units if not isinstance(counted.get(unit), int))
    if right and not problems:
        sentences.append(
            f"the pairs of the selection '{c.selection['how']}' were found again and kappa counted in them "
            f"({', '.join(right)}): none is above what is stated"
        )
    matches = False if problems else (None if unknown else True)
    same = _same_graph(c, indexed, salt, sentences, problems)
    return Recount(matches, same, unknown, sentences, problems)


def _other_graph(c: Any, indexed: Any, sentences: list[str]) -> list[str]:
    """What shows that these are not the pairs given to the fit, where it was given pairs."""
    from pairveil.graph.kappa import kappa

    if c.records not in _OF_PAIRS or UNKNOWN_TOPOLOGY in c.public:
        return []
    if c.parties is not None:
        sentences.append(
            "several parties gave pairs; that kappa follows from theirs by the stated rule was recomputed"
        )
        return []
    edges = indexed.pairs
    if len(edges) != c.n_pairs_given:
        return [f"these are {len(edges):,} pairs, and {c.n_pairs_given:,} were given to the fit"]
    if KINDS[c.records].holds_pairs and c.selection["how"] == "all":
        return []  # groups that were given: no pair was dropped, and none is a record
    counted, stated = kappa(edges).relationship, c.selection["full_graph_relationship_kappa"]
    if stated < counted:
        return [f"kappa of all pairs is {counted}, and the certificate states {stated}"]
    sentences.append(f"kappa of all pairs was recounted: {counted}, stated {stated}")
    return []


def kappas_of(c: Any, indexed: Any) -> dict[str, int | str]:
    """kappa of each unit of a certificate, counted from the graph; why not, where its own meaning was not.

    A number is returned only where the pairs of *all* queries are known to be in the graph and the unit's
    own meaning was counted in them: a person's as one id, an entity's as its R largest degrees, a group's as
    a component that is small enough to be one group. The certificate must not contradict itself.
    """
    from pairveil.graph.kappa import kappa
    from pairveil.learners.preparing import pairs_of_entity

    used = _used(c, indexed)
    if isinstance(used, str):
        return dict.fromkeys(c.units, used)
    if KINDS[c.records].holds_pairs:
        return _kappas_of_groups(c, used)
    found = kappa(used)
    counted: dict[str, int | str] = {unit: found.of(unit) for unit in UNITS}
    records = _entity_records(c)
    if isinstance(records, str):
        return counted | dict.fromkeys(("relationship", "person"), records)
    if records is not None:
        person = pairs_of_entity(used, records)
        related = found.relationship if records == 1 else max(found.relationship, person)
        counted |= {"relationship": related, "person": person}
    if PEOPLE_TOGETHER in c.public:
        counted["person"] = (
            "it covers people who change together, and the column that says who does is not in this file"
        )
    return counted


def _entity_records(c: Any) -> int | str | None:
    """How many records a person has at most; None: a person is one; why not, where it is not plain."""
    from pairveil.learners.preparing import ENTITY, entity_sentence

    parts = [c.plan.get(name) or {} for name in ("linkage", "error_curve")]
    if not all(isinstance(part, dict) for part in parts):
        return _NOT_PLAIN
    stated = [part.get("entity_records") for part in parts]
    numbers = {one for one in stated if isinstance(one, int)}
    if any(one is not None and not isinstance(one, int) for one in stated):
        return _NOT_PLAIN
    said = [one for one in c.public if one.startswith(ENTITY.partition("{n}")[0])]
    plain = len(numbers) == 1 and all(isinstance(one, int) and one >= 1 for one in numbers)
    if not numbers and not said:
        return None
    if plain and said in ([entity_sentence(n, e)] for n in numbers for e in (False, True)):
        return int(numbers.pop())
    return _NOT_PLAIN


def _kappas_of_groups(c: Any, used: Any) -> dict[str, int | str]:
    """One group for each unit, if the pairs fall into clusters that can be groups."""
    import numpy as np

    from pairveil.learners.preparing import components
    from pairveil.records.groups import MOST_PEOPLE

    size = c.plan.get("group_size")
    limit = size if isinstance(size, int) and 2 <= size <= MOST_PEOPLE else MOST_PEOPLE
    clusters = components(used, int(used.max()) + 1)
    largest = int(np.bincount(clusters[clusters >= 0]).max())
    # Groups share nobody, so people who are joined by pairs are in one. Where more people are joined than a
    # group holds, their pairs are in several records, and some person's are in two at least.
    return {unit: 1 if unit == "pair" or largest <= limit else 2 for unit in c.units}


def _used(c: Any, indexed: Any) -> Any:
    """The pairs that all queries were about, by the same public rule; why not, where they cannot be told."""
    import numpy as np

    from pairveil.graph.choosing import select_pairs

    kinds = set(c.costs_of)
    if c.parties is not None:
        return "each of several parties selected its own pairs, and counted them"
    if "search" in c.plan:
        return "which pairs a search held out for its scores is not told"
    if not kinds <= _OF_PAIRS or len(kinds) > 1:
        return f"the certificate is about {' and '.join(sorted(kinds))}, and the file lists pairs"
    if UNKNOWN_TOPOLOGY in c.public or ASSUMED_TOPOLOGY in c.public:
        return "the fit was not told who is in which pair"
    others = c.plan.get("thresholds") or ()
    if not all(isinstance(one, dict) and one.get("same_pairs") is True for one in others):
        return (
            "a threshold or an error curve was measured on other pairs, which are not in this file"
        )
    if c.selection["how"] == "all" and "score" not in c.plan:
        return indexed.pairs
    if PEOPLE_TOGETHER in c.public:
        return (
            "the pairs were selected by a column of who changes together, which is not in this file"
        )
    if not NOISE_SOURCES.get(c.noise_source, False):
        return "the pairs were selected by the seed, which is not in the certificate"
    size = c.plan.get("group_size") if KINDS[c.records].holds_pairs else None
    try:
        # As a fit does.
        kept = select_pairs(indexed, c.selection["how"], random_state=0, group_size=size)
        used = indexed.pairs[kept]
        if "score" in c.plan:
            from pairveil.evaluation.held_out import split_people

            parts = split_people(used, min(c.plan["score"]["n_pairs"], len(used)), seed=0)
            used = used[np.sort(np.concatenate(parts))]
        if len(used) == c.n_pairs_used:
            return used
    except (InputError, KeyError, TypeError, ValueError):  # the sender's words make no sense
        pass
    return "the selection could not be made again (another version's, perhaps)"


def _same_graph(
    c: Any, indexed: Any, salt: bytes | None, sentences: list[str], problems: list[str]
) -> bool | None:
    from pairveil.graph.kappa import digest_of

    if c.graph_digest is None:
        sentences.append("the certificate carries no digest of the graph to compare with")
        return None
    if salt is None:
        sentences.append("the graph's digest was not compared: it needs the sender's --salt FILE")
        return None
    same = bool(digest_of(indexed.ids, indexed.pairs, salt) == c.graph_digest)
    if same:
        sentences.append("the graph is the certified one: its digest agrees")
    else:
        problems.append("this is not the certified graph, or not its salt: the digest differs")
    return same


def read_salt(file: Path) -> bytes:
    """The salt that `make_salt` wrote."""
    advice = "it is written by `pairveil fit --graph-salt FILE`"
    if not file.is_file() or file.stat().st_size > _MOST_BYTES:
        raise InputError(f"--salt: {file} is no file with a salt; {advice}")
    try:
        salt = bytes.fromhex(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        raise InputError(f"--salt: {file} holds no salt; {advice}") from None
    if len(salt) < 16:
        raise InputError(f"--salt: {file} holds no salt of 16 bytes or more; {advice}")
    return salt


def make_salt(file: Path) -> bytes:
    """A salt for the graph's digest: read if the file is there, else made, for its owner alone."""
    if file.exists():
        return read_salt(file)
    salt = secrets.token_bytes(32)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        raise InputError(f"--graph-salt: {file} cannot be written") from None
    with os.fdopen(handle, "w", encoding="ascii") as out:
        out.write(salt.hex() + "\n")
    return salt


def salted_digest(found: Any, salt: Path) -> str:
    """The salted name of the given graph, by the ids of the pairs file: who checks it has no other."""
    from pairveil.graph.kappa import digest_of
    from pairveil.records.identity import index_pairs

    indexed = index_pairs(found)
    return digest_of(indexed.ids, indexed.pairs, make_salt(salt))
