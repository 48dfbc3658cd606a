"""Auditing in one run: many canaries, each in or out by a coin, one output, many guesses.

The auditor tosses a fair coin for each of m canaries, runs the mechanism once and guesses some of the
coins from the output. Each canary must be a group of pairs as large as the claim's kappa, and the
two sides of the coin must be neighbours in the claim's adjacency (contents or null; label or flipped
label). Both bounds are one-sided tests of the hypothesis "the mechanism keeps its promise".
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pairveil.errors import InputError

Blow = Callable[[float], float]


def epsilon_one_run(
    correct: int, guesses: int, canaries: int, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Largest epsilon that one run refutes, whatever the mechanism.

    `refutes_curve` against the trade-off curve of (epsilon, delta)-privacy. Where delta is next to nothing it
    is within 0.02 of the theorem of Steinke, Nasr and Jagielski (2023), else sharper, with many canaries much
    so. A delta above ``(1 - confidence) * guesses / canaries`` leaves nothing to refute.

    Parameters
    ----------
    correct, guesses, canaries : int
        Right guesses, guesses made (the auditor may abstain), coins tossed.

    Examples
    --------
    >>> round(epsilon_one_run(correct=190, guesses=200, canaries=1000), 2)
    2.38
    >>> epsilon_one_run(correct=105, guesses=200, canaries=1000)
    0.0
    """

    def refuted(epsilon: float) -> bool:
        odds = math.exp(epsilon)

        def shrink(x: float) -> float:
            """Least probability under one input of an event that has probability x under the other."""
            return max(0.0, (x - delta) / odds, 1.0 - delta - odds * (1.0 - x))

        return refutes_curve(shrink, correct, guesses, canaries, confidence)

    return largest_refuted(refuted)


def refutes_curve(
    shrink: Blow, correct: int, guesses: int, canaries: int, confidence: float = 0.95
) -> bool:
    """Whether one run refutes an f-DP promise (Mahloujifar, Melis and Chaudhuri 2024).

    ``shrink``: ``x -> g^-1(x)`` with g(x) = 1 - f(x) the largest probability under one input of an event
    of probability x under the other. For mu-GDP: ``Phi(Phi^-1(x) - mu)``.

    Notes
    -----
    Their Theorem 3.2, for two-sided coins: let h and r be the probabilities, over all canaries, of a wrong
    and of a right guess in the event of at least c' right guesses. From c' = c downwards, h is at
    least ``shrink(r)``, and r grows by ``c'/(guesses - c')`` of what h grows. Starting from what
    a test at this confidence allows, a sum beyond ``guesses/canaries`` cannot be.
    """
    _check(correct, guesses, canaries)
    error = 1.0 - confidence
    right, wrong = error * correct / canaries, error * (guesses - correct) / canaries
    for c in range(correct - 1, -1, -1):
        more = max(wrong, shrink(right))
        if more == wrong:
            break
        right = min(1.0, right + c / (guesses - c) * (more - wrong))
        wrong = more
    return right + wrong > guesses / canaries


def largest_refuted(refuted: Callable[[float], bool]) -> float:
    """The largest value that is refuted, to 1e-6, on the safe side; 0 if none is."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high) and high < 64.0:
        low, high = high, 2.0 * high
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _check(correct: int, guesses: int, canaries: int) -> None:
    if not 0 <= correct <= guesses <= canaries or guesses < 1:
        raise InputError("need 0 <= correct <= guesses <= canaries, and at least one guess")
