"""Several parties on one machine: for tests, demonstrations and measurements, never for a release."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from pairveil.engine.backends.parties import TOO_LONG, NoiseBy, Rule
from pairveil.errors import InputError, PartyError
from pairveil.parties.agreement import (
    Consent,
    Joint,
    OnStep,
    Party,
    coordinate,
    own_records,
    take_part,
    terms_for,
)
from pairveil.privacy.ledger import PrivacyLedger


class Line:
    """One end of a channel between two threads."""

    def __init__(
        self,
        outgoing: queue.Queue[bytes | None],
        incoming: queue.Queue[bytes | None],
        patience: float,
    ) -> None:
        self._outgoing, self._incoming = outgoing, incoming
        self._patience = patience  # seconds that `receive` waits
        self.n_bytes = 0  # sent so far from this end

    def send(self, message: bytes) -> None:
        """Hand a message over."""
        self.n_bytes += len(message)
        self._outgoing.put(message)

    def receive(self, most: int) -> bytes:
        """The next message."""
        try:
            found = self._incoming.get(timeout=self._patience)
        except queue.Empty:
            raise TimeoutError from None
        if found is None:
            raise EOFError
        if len(found) > most:
            raise EOFError(TOO_LONG)
        return found

    def close(self) -> None:
        """The other end finds nothing more."""
        self._outgoing.put(None)


def line(patience: float = 60.0) -> tuple[Line, Line]:
    """Both ends of a channel between two threads."""
    there, back = queue.Queue[bytes | None](), queue.Queue[bytes | None]()
    return Line(there, back, patience), Line(back, there, patience)


def simulate(
    learner: Any,
    parts: Sequence[Any],
    *,
    kappa_rule: Rule = "sum",
    noise: NoiseBy = "parties",
    colluders: int = 1,
    graph_key: bytes | None = None,
    ledgers: Sequence[PrivacyLedger | None] = (),
    lines: Sequence[tuple[Line, Line]] = (),
    on_step: OnStep | None = None,
) -> Joint:
    """A fit of several parties, each a thread of this process, with all that they would say to each other.

    Parameters
    ----------
    learner : PrivateLearner
        Its parameters are the terms; it is not changed.
    parts : sequence of PairSet
        Each party's pairs, all with the same columns.
    kappa_rule, noise, colluders
        As for `pairveil.parties.terms_for`.
    graph_key : bytes, optional
        For ``kappa_rule='union'``.
    ledgers : sequence of PrivacyLedger, optional
        One a party.
    lines : sequence of pairs of Line, optional
        To watch what is said.
    on_step : callable, optional
        As for ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from pairveil import DPPMetricLearner, PairSet
    >>> rng = np.random.default_rng(0)
    >>> def hospital(first):
    ...     pairs = np.arange(400).reshape(200, 2)
    ...     labels = rng.choice([-1, 1], 200)
    ...     return PairSet(rng.normal(size=(400, 3)) / 4, pairs, labels, ids=np.arange(first, first + 400))
    >>> parts = [hospital(400 * i) for i in range(3)]
    >>> joint = simulate(DPPMetricLearner(n_steps=3, random_state=0), parts, kappa_rule="disjoint")
    >>> joint.certificate.n_pairs_used, joint.certificate.parties["colluders"]
    (600, 1)
    """
    terms = terms_for(
        learner, len(parts), kappa_rule=kappa_rule, noise=noise, colluders=colluders, rehearsal=True
    )
    consent = Consent(
        float(learner.epsilon), float(learner.delta), rules=(kappa_rule,), rehearsal=True,
        trusts_coordinator=noise == "coordinator",
    )  # fmt: skip
    lines = lines or [line() for _ in parts]
    if len(lines) != len(parts) or len(ledgers) not in (0, len(parts)):
        raise InputError("one ledger and one line for each party")
    problems: list[BaseException] = []

    def run(place: int) -> None:
        made = partial(own_records, pairs=parts[place])
        ledger = ledgers[place] if ledgers else None
        name = f"party {place + 1:0{len(str(len(parts)))}}"  # in the order of the parts
        party = Party(name, made, consent, ledger, graph_key)
        try:
            take_part(lines[place][1], party)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(parts))]
    for thread in threads:
        thread.start()
    joint = None
    try:
        joint = coordinate(terms, [ends[0] for ends in lines], on_step=on_step)
    except PartyError as problem:
        problems.append(problem)
    finally:
        for thread in threads:
            thread.join()
    # What stopped one of them comes before what the others heard of it.
    for first in sorted(problems, key=lambda one: isinstance(one, PartyError)):
        raise first
    assert joint is not None
    return joint
