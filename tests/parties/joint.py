"""Hospitals of made-up people, and one answer of all of them, with what was said on each line."""

import threading

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from pairveil.engine.backends.local import Local
from pairveil.engine.backends.parties import Gathering, Masks, OneOfSeveral
from pairveil.parties.rehearsal import line
from pairveil.records.pairset import PairSet


def hospital(first, n_pairs=300, n_features=4, seed=0):
    """Pairs of two people each, whose ids start at ``first``."""
    rng = np.random.default_rng([seed, first])
    people = rng.uniform(-1, 1, size=(2 * n_pairs, n_features)) / np.sqrt(n_features)
    pairs = np.arange(2 * n_pairs).reshape(-1, 2)
    labels = np.where(np.abs(people[pairs[:, 0], 0] - people[pairs[:, 1], 0]) < 0.2, 1, -1)
    return PairSet(people, pairs, labels, ids=np.arange(first, first + 2 * n_pairs))


def hospitals(n_parties=3, **about):
    """Several of them, with nobody in two."""
    return [hospital(100_000 * place, **about) for place in range(n_parties)]


class Watched:
    """One end of a line that keeps what was sent through it."""

    def __init__(self, end):
        self.end, self.sent = end, []

    def send(self, message):
        self.sent.append(message)
        self.end.send(message)

    def receive(self, most):
        return self.end.receive(most)

    def close(self):
        self.end.close()


def together(
    parts, query, statistic, grid, scale, noises, *, shares, rounds=1, patience=20.0, change=None
):
    """The coordinator's totals of some answers, and what each party sent; ``shares``: None is its noise.

    ``change``: from a party's number and its end of the line to the end that it gets.
    """
    keys = [X25519PrivateKey.generate() for _ in parts]
    roster = {f"{i}": key.public_key().public_bytes_raw() for i, key in enumerate(keys)}
    n_records = sum(part.n_records for part in parts)
    ends = [line(patience) for _ in parts]
    watched = [
        Watched(end if change is None else change(i, end)) for i, (_, end) in enumerate(ends)
    ]
    problems = []

    def take_part(i):
        masks = Masks(keys[i], roster, f"{i}", bytes(32))
        backend = OneOfSeveral(watched[i], Local(parts[i]), masks, n_records, shares)
        try:
            for step in range(rounds):
                backend.noisy_sum(query, statistic, step, grid, scale, noises[i + 1])
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=take_part, args=(i,)) for i in range(len(parts))]
    for thread in threads:
        thread.start()
    channels = {f"{i}": ends[i][0] for i in range(len(parts))}
    gathering = Gathering(channels, n_records, in_shares=shares is not None)
    try:
        found = [
            gathering.noisy_sum(query, statistic, step, grid, scale, noises[0])
            for step in range(rounds)
        ]
    finally:
        for end, _ in ends:
            end.close()
        for thread in threads:
            thread.join()
    assert not problems, problems
    return found, [one.sent for one in watched]
