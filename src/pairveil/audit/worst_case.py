"""The worst case for a whole fit: a canary that every answer shows at its clip bound.

A fit is a chain of queries, and a canary that is loud in one may be silent in the next: the signal is blind
to a pair that points along all columns, a gradient is 0 where W is, a dissimilar pair beyond the margin
pulls nowhere. The attacker knows all other pairs, so they may be chosen as well; here they set the stage:

- as many similar as dissimilar pairs: the balanced weights are 1 for both labels;
- zero-out: dissimilar ones, short and in the canary's column, pull W there as long as the margin allows, so
  that the canary, similar and long, is clipped at every step, however little noise there is;
- replace: similar ones, short and in the canary's column, pull W there to the size of its noise, small enough
  for a dissimilar canary to lie within the margin and, the canary being long, large enough for a similar one
  to be clipped (with much less noise, or in a few large steps, W ends too short for that);
- the others, long and in the other columns: differences have their full length, and the learned metric
  ranks the canary far from where Euclid does.

The survey stays what it is: its contributions have no negative entries, so replacing a pair never moves it
by twice the clip bound (by 0.65 of that at most, by 0.22 in this case); the accounting
charges twice all the same.
"""

from __future__ import annotations

import numpy as np

from pairveil.audit.canaries import Neighbours, canary_of
from pairveil.privacy.units import Adjacency, Unit
from pairveil.records.pairset import PairSet

SHORT = (
    0.05  # length of the pairs on stage that lie in the canary's column, relative to the longest
)
REPLACED = 0.4  # length of the canary's dissimilar contents: no distance to the margin is too long


def worst_case(
    unit: Unit,
    kappa: int,
    n_features: int,
    adjacency: Adjacency,
    n_others: int,
    *,
    data_norm: float = 1.0,
) -> Neighbours:
    """A unit's pairs among others that keep them visible throughout a fit.

    Parameters
    ----------
    unit, kappa, n_features, adjacency
        As in `pairveil.audit.canaries.canary_of`.
    n_others : int
        Other pairs, of people of their own, the same in both inputs. They must be many enough
        to be heard through the noise.
    data_norm : float
        Bound on people's l2 norms.

    Examples
    --------
    >>> worlds = worst_case("person", 3, 2, "replace", n_others=100)
    >>> worlds.kappa, worlds.first.n_pairs
    (3, 103)
    """
    canary = canary_of(unit, kappa, n_features, adjacency, data_norm=data_norm)
    people, similar = _others(n_others, n_features, data_norm)
    labels = similar if adjacency == "replace" else -similar
    # Zero-out compares with nulls; replace with a shorter pair that has the other label.
    worlds = [
        _add(canary.first, people, labels, REPLACED if adjacency == "replace" else 1.0),
        _add(canary.second, people, labels, 1.0),
    ]
    return Neighbours(worlds[0], worlds[1], adjacency, canary.name)


def _others(n: int, d: int, data_norm: float) -> tuple[np.ndarray, np.ndarray]:
    """People and labels of the pairs on stage: half similar in column 0, half dissimilar elsewhere.

    Zero-out turns the labels around.
    """
    similar = n // 2
    columns = np.eye(d)[1:] if d > 1 else np.eye(1)
    ends = np.concatenate(
        [
            np.tile(SHORT * np.eye(d)[0], (similar, 1)),
            columns[np.arange(n - similar) % len(columns)],
        ]
    )
    people = np.empty((2 * n, d))
    people[0::2], people[1::2] = data_norm * ends, -data_norm * ends
    return people, np.where(np.arange(n) < similar, 1, -1).astype(np.int8)


def _add(data: PairSet, people: np.ndarray, labels: np.ndarray, length: float) -> PairSet:
    assert data.labels is not None
    features = np.concatenate([length * np.asarray(data.features), people])
    pairs = data.n_people + np.arange(len(people)).reshape(-1, 2)
    return PairSet(
        features, np.concatenate([data.pairs, pairs]), np.concatenate([data.labels, labels])
    )
