"""Recounting a certificate's kappa from the public graph, and naming that graph by a salted digest."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from pairveil.errors import InputError
from pairveil.privacy.units import NOISE_SOURCES, PEOPLE_TOGETHER, UNITS

_MOST_BYTES = 4096


class Recount(NamedTuple):
    """What the public graph says of a certificate.

    Attributes
    ----------
    kappa_matches : bool or None
        Whether no stated kappa is below the counted one; None where the used pairs could not be found.
    graph_matches : bool or None
        Whether this is the graph whose digest the certificate carries; None where that was not compared.
    sentences : list of str
        What was compared, for people.
    problems : list of str
        What does not agree.
    """

    kappa_matches: bool | None
    graph_matches: bool | None
    sentences: list[str]
    problems: list[str]


def recount(certificate: Any, indexed: Any, salt: bytes | None) -> Recount:
    """Compare a certificate with the public graph of all given pairs.

    Parameters
    ----------
    certificate : Certificate
    indexed : IndexedPairs
        The graph: ids and pairs, labels not needed.
    salt : bytes or None
        The sender's salt, for the digest.
    """
    from pairveil.graph.kappa import kappa

    edges, c = indexed.pairs, certificate
    problems, sentences = [], []
    if len(edges) != c.n_pairs_given:
        problems.append(
            f"these are {len(edges):,} pairs, and {c.n_pairs_given:,} were given to the fit"
        )
    counted = kappa(edges).relationship
    stated = c.selection["full_graph_relationship_kappa"]
    if stated < counted:
        problems.append(f"kappa of all pairs is {counted}, and the certificate states {stated}")
    else:
        sentences.append(f"kappa of all pairs was recounted: {counted}, stated {stated}")
    used = None if problems else _used(c, indexed)
    if used is None and not problems:
        sentences.append(
            "kappa of the used pairs was not compared: which pairs were used cannot be found again "
            "from the graph (a search, a seeded fit, one of people who change together, or another version's "
            "selection)"
        )
    elif used is not None and c.records == "groups":
        # Whatever the graph, its clusters are disjoint: each unit is in one of them.
        sentences.append(
            f"the selection '{c.selection['how']}' was made again: its {len(used):,} pairs fall into "
            "disjoint groups, so each unit is in one record"
        )
    elif used is not None:
        found = kappa(used)
        wrong = [unit for unit in UNITS if found.of(unit) > c.kappas[unit]]
        problems += [
            f"kappa of the used pairs is {found.of(unit)} for unit '{unit}', and the certificate "
            f"states {c.kappas[unit]}"
            for unit in wrong
        ]
        if not wrong:
            sentences.append(
                f"the selection '{c.selection['how']}' was made again and kappa of its "
                f"{len(used):,} pairs recounted: none is above what is stated"
            )
    matches = False if problems else (None if used is None else True)
    same = _same_graph(c, indexed, salt, sentences, problems)
    return Recount(matches, same, sentences, problems)


def _used(c: Any, indexed: Any) -> Any:
    """The pairs that the fit used, by the same public rule; None where they cannot be told."""
    from pairveil.graph.choosing import select_pairs

    if "search" in c.plan:
        return None  # which pairs were held out for scores is random, and not told
    if c.selection["how"] == "all":
        return indexed.pairs
    if PEOPLE_TOGETHER in c.public:
        return None  # the selection followed a column that is not in this file
    if not NOISE_SOURCES.get(c.noise_source, False):
        return None  # the selection followed the seed, which is not in the certificate
    size = c.plan.get("group_size") if c.records == "groups" else None
    try:
        kept = select_pairs(
            indexed, c.selection["how"], random_state=0, group_size=size
        )  # as a fit does
    except InputError:  # the sender's words make no sense: nothing can be found again
        return None
    return indexed.pairs[kept] if len(kept) == c.n_pairs_used else None


def _same_graph(
    c: Any, indexed: Any, salt: bytes | None, sentences: list[str], problems: list[str]
) -> bool | None:
    from pairveil.graph.digest import digest_of

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
    from pairveil.data.resolving import index_pairs
    from pairveil.graph.digest import digest_of

    indexed = index_pairs(found)
    return digest_of(indexed.ids, indexed.pairs, make_salt(salt))
