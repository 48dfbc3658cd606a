"""`fit --tune`: the best of several fits, chosen privately and charged as one release."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pairveil.cli.output import stdout
from pairveil.cli.planned import print_epsilons
from pairveil.cli.waiting import waiting
from pairveil.cli.which_learner import make_learner
from pairveil.errors import InputError


def check_tune(kind: str, select: str, refused: Mapping[str, object]) -> None:
    """Refuse what a search cannot do, before any file is read.

    Parameters
    ----------
    kind : str
        What records are.
    refused : mapping
        Options that do not go with ``--tune``, by name, as given.
    """
    if kind != "pairs" or select == "groups":
        raise InputError("--tune compares fits to single pairs: it goes with PAIRS and no groups")
    for option, given in refused.items():
        if given:
            raise InputError(f"{option} does not go with --tune: {_WHY.get(option, _ON_ITS_OWN)}")


_ON_ITS_OWN = "a search is summed and released on this machine, as one"
_WHY = {
    "--checkpoint": "only the best of the trials may ever leave, so none of them is kept. A search that is "
    "killed stays charged and starts anew",
    "--audit": "the attack is on the plan of a single fit",
}


def read_grid(tuned: Sequence[str]) -> dict[str, list[Any]]:
    """The values to try of each option.

    Examples
    --------
    >>> read_grid(["n-components=4,16,none", "select=paths,forest"])
    {'n_components': [4, 16, None], 'select': ['paths', 'forest']}
    """
    grid: dict[str, list[Any]] = {}
    for words in tuned:
        option, equals, listed = words.partition("=")
        name = option.strip().removeprefix("--").replace("-", "_")
        texts = [one.strip() for one in listed.split(",")]
        if not (name and equals and all(texts)):
            raise InputError("--tune takes OPTION=A,B,C: --tune select=paths,forest")
        if name in grid or len(set(texts)) < len(texts):
            raise InputError(f"--tune names '{name}' or one of its values twice")
        grid[name] = [_value(one) for one in texts]
    return grid


def _value(text: str) -> Any:
    """A number where it is one, None for 'none', else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None if text == "none" else text


def make_search(
    tuned: Sequence[str], learner: str, options: dict[str, Any], typed: Collection[str]
) -> Any:
    """The search that ``--tune`` asks for, around the learner with the other options.

    Parameters
    ----------
    tuned : sequence of str
        As typed.
    learner, options, typed
        As for `pairveil.cli.which_learner.make_learner`.
    """
    from pairveil.evaluation.search import PrivateSearch

    grid = read_grid(tuned)
    for name in sorted(set(grid) & set(typed) - {"epsilon"}):
        raise InputError(
            f"--{name.replace('_', '-')} is given, and --tune tries others: leave one out"
        )
    if "epsilon" in grid and "epsilon" not in typed:
        numbers = [one for one in grid["epsilon"] if isinstance(one, int | float)]
        options = options | {"epsilon": max(numbers, default=options["epsilon"])}
    if "learner" in grid:
        grid["learner"] = [make_learner(str(name), options, ()) for name in grid["learner"]]
    model = make_learner(learner, options, typed)
    return PrivateSearch(
        model, grid, options["epsilon"], options["delta"], random_state=options["random_state"]
    )


def print_search(planned: Any) -> None:
    """What a search is about to spend, before it does."""
    search = planned.plan["search"]
    held_out = planned.plan["thresholds"][0]["n_pairs"]
    stdout.print(
        f"{len(search['candidates'])} candidates; a random number of trials, {search['mean_trials']} on "
        f"average, each a fit to up to {planned.n_pairs_given - held_out:,} pairs and a noisy score of "
        f"{held_out:,} others. Only the best leaves: one certificate, one charge."
    )
    print_epsilons(planned, f"epsilon at delta {planned.delta:g}, by unit")


def run_search(search: Any, prepared: Any, talk: bool, checkpoint: None = None) -> Any:
    """Search; returns the best learner, fitted, with the ledger that was charged."""
    del checkpoint  # a search has none
    with waiting("searching", talk):
        search.fit(prepared)
    return search.best_estimator_


def found(search: Any) -> dict[str, Any]:
    """The options that won and their score; both are covered by the certificate."""
    from pairveil.learners import LEARNERS

    options = dict(search.best_params_)
    if "learner" in options:
        kind = type(options["learner"]).__name__
        options["learner"] = next(
            name for name, path in LEARNERS.items() if path.endswith(f":{kind}")
        )
    return {"options": options, "score": search.best_score_}
