"""How far a won contest is believed, from its released score and public numbers.

The contest asks the training pairs whether the learned metric orders them better than Euclid does. A win may
be luck for three reasons, measured in docs/decisions/0020-doubt.md:

- the pairs that judge also taught, and few pairs for many columns can be fitted by luck;
- clipping forgives the large errors of a metric of few directions;
- the released moments that turn distances into ranks are noisy.

So what luck could have made of the score decides how much of Euclid stays in the metric. A contest that is
lost narrowly is no proof either: a little of what was learned, beside Euclid, did better than Euclid alone on
nearly all data measured. All of it is post-processing of a released number.
"""

from __future__ import annotations

import math

LUCK = 0.04  # score of few pairs by luck
SCARCE = 16.0  # pairs for each column: fewer are few
CLIP = 0.2  # of the contest at little signal; with a wider one luck scores more
DEVIATIONS = 3.0  # of noise that count as luck, too
BELIEVED = 0.5  # part of a score that luck may make and yet be believed
MOST = 0.6  # weight of Euclid where luck may have made all of the score
MORE = 0.1  # added to MOST where pairs are few
LOST = 0.85  # weight of Euclid where the contest was lost narrowly
NARROWLY = 1.0  # deviations of noise below zero
SCANT = 2.0  # pairs that speak for each column: what fewer taught, they must praise
SPEAKS = 4.0  # signal to noise of the descent below which what was learned is noise alone


def few(columns: float) -> float:
    """How far pairs are few for their columns: 1 below 16 that speak for each column, 0 where they abound.

    Parameters
    ----------
    columns : float
        Columns for each pair that speaks.

    Examples
    --------
    >>> few(0.1), few(0.03125)
    (1.0, 0.5)
    """
    return min(1.0, SCARCE * columns)


def refuted(score: float, columns: float) -> bool:
    """Whether so few pairs speak against what they taught: luck alone would have made a better score.

    Parameters
    ----------
    score : float
        Of the contest, for each pair that speaks.
    columns : float
        Columns for each pair that speaks.

    Examples
    --------
    >>> refuted(0.006, columns=0.7), refuted(0.03, columns=0.7), refuted(0.006, columns=0.25)
    (True, False, False)
    """
    return SCANT * columns > 1 and score < LUCK / 2


def lost(score: float, noise: float, signal: float) -> float:
    """Weight of Euclid where the contest was not won.

    Parameters
    ----------
    score, noise : float
        Of the contest, and the deviation of its noise.
    signal : float
        Signal to noise of the descent.

    Examples
    --------
    >>> lost(1.0, 2.0, signal=8.0), lost(-3.0, 2.0, signal=8.0), lost(1.0, 2.0, signal=0.5)
    (0.85, 1.0, 1.0)
    """
    return LOST if score > -NARROWLY * noise and signal >= SPEAKS else 1.0


def doubt(score: float, noise: float, columns: float, clip: float = CLIP) -> float:
    """Weight of Euclid that a won contest leaves: more, the more of its score luck could have made.

    A good half of Euclid does no harm where the win was luck, and keeps most of what was learned elsewhere.

    Parameters
    ----------
    score, noise : float
        Of the contest, and the deviation of its noise, both for each pair that speaks.
    columns : float
        Columns for each pair that speaks.
    clip : float
        Of the contest.

    Examples
    --------
    >>> [round(doubt(score, noise=0.002, columns=0.1), 2) for score in (0.02, 0.05, 0.1)]
    [0.7, 0.31, 0.0]
    >>> round(doubt(0.02, noise=0.004, columns=0.001), 2)  # pairs abound: less of it can be luck
    0.15
    """
    scarcity = few(columns)
    lucky = math.hypot(LUCK * math.sqrt(scarcity * clip / CLIP), DEVIATIONS * noise)
    most = MOST + MORE * scarcity
    if score <= lucky / (BELIEVED + most):
        return most
    return max(0.0, lucky / score - BELIEVED)
