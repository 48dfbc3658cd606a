"""How far a won contest is believed, from its released score and public numbers.

The contest asks the training pairs whether the learned metric orders them better than Euclid does. A win may
be luck for three reasons, measured in docs/decisions/0020-doubt.md:

- the pairs that judge also taught, and few pairs for many columns can be fitted by luck;
- clipping forgives the large errors of a metric of few directions, however many pairs there are;
- the released moments that turn distances into ranks are noisy.

So what luck could have made of the score decides how much of Euclid stays in the metric. All of it is
post-processing of a released number.
"""

from __future__ import annotations

import math

LUCK = 0.04  # score of few pairs by luck
SCARCE = 16.0  # pairs for each column: fewer are few
ALWAYS = 0.1  # part of LUCK squared that any number of pairs keeps: what clipping forgives
DEVIATIONS = 3.0  # of noise that count as luck, too
BELIEVED = 0.5  # part of a score that luck may make and yet be believed
MOST = 0.6  # weight of Euclid where luck may have made all of the score


def doubt(score: float, noise: float, columns: float) -> float:
    """Weight of Euclid that a won contest leaves: more, the more of its score luck could have made.

    A good half of Euclid does no harm where the win was luck, and keeps most of what was learned elsewhere.

    Parameters
    ----------
    score, noise : float
        Of the contest, and the deviation of its noise, both for each pair that speaks.
    columns : float
        Columns for each pair that speaks.

    Examples
    --------
    >>> [round(doubt(score, noise=0.002, columns=0.1), 2) for score in (0.02, 0.05, 0.1)]
    [0.6, 0.31, 0.0]
    >>> round(doubt(0.02, noise=0.002, columns=0.001), 2)  # pairs abound: less of it can be luck
    0.2
    """
    few = min(1.0, max(ALWAYS, SCARCE * columns))
    lucky = math.hypot(LUCK * math.sqrt(few), DEVIATIONS * noise)
    if score <= lucky / (BELIEVED + MOST):
        return MOST
    return max(0.0, lucky / score - BELIEVED)
