"""Which learner `fit` runs, on which files, with which of the options."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import typer

from pairveil.errors import InputError
from pairveil.learners import DEFAULT_LEARNER, learner_class

FILES: dict[str, str] = {
    "pairs": "FEATURES and PAIRS",
    "classes": "FEATURES and --classes COLUMN",
    "tuples": "FEATURES and TUPLES",
}
"""What `fit` reads for each kind of input that a learner can learn from (`learns_from`)."""


def input_of(name: str, pairs: str | None, classes: str | None) -> str:
    """The kind of input that was given: a key of `FILES` that the learner can learn from.

    Parameters
    ----------
    name : str
        Of the learner.
    pairs, classes : str or None
        The file of pairs or tuples and the column of classes, where given.

    Examples
    --------
    >>> input_of("contrastive", None, "ward")
    'classes'
    >>> input_of("triplet", "triples.csv", None)
    'tuples'
    >>> input_of("contrastive", None, None)
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: learner 'contrastive' needs FEATURES and PAIRS or ...
    """
    if pairs is not None and classes is not None:
        raise InputError("give PAIRS or --classes, not both: a fit learns from one of them")
    given = None
    if pairs is not None or classes is not None:
        given = "pairs" if classes is None else "classes"
        if name == DEFAULT_LEARNER:  # learns from both; loading it takes a second
            return given
    from pairveil.learners.estimator import PrivateMetricLearner

    learner = learner_class(name)
    kinds = learner.learns_from
    if given == "pairs" and "tuples" in kinds:
        given = "tuples"
    readable = [FILES[kind] for kind in kinds if kind in FILES]
    if not readable or not issubclass(learner, PrivateMetricLearner):
        raise InputError(
            f"learner '{name}' learns from {' or '.join(kinds)}, or makes no metric: fit it in Python"
        )
    if given not in kinds:
        got = "FEATURES alone" if given is None else FILES[given]
        be = "was" if given is None else "were"
        raise InputError(f"learner '{name}' needs {' or '.join(readable)}; {got} {be} given")
    return str(given)


_OF_FILES = {"layout", "threshold", "record_id", "graph_salt"}
_OF_COLUMNS = {"left", "right", "label", "zero_means"}
_REFUSED = {
    "--classes": _OF_FILES | _OF_COLUMNS | {"select", "kappa"},
    "--groups": _OF_FILES | {"select", "kappa"},
    "tuples": _OF_FILES | _OF_COLUMNS | {"groups"},
}
"""Options that say nothing beside what is learned from."""


def typed_options(context: typer.Context) -> set[str]:
    """Names of the options that stand on the command line itself."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def check_options(kind: str, grouped: bool, typed: Collection[str]) -> None:
    """Refuse options that were typed and would be ignored.

    Parameters
    ----------
    kind : str
        Of the input: a key of `FILES`.
    grouped : bool
        Whether records are given groups.

    Examples
    --------
    >>> check_options("pairs", True, {"select", "groups"})
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: --select goes with PAIRS, not with --groups
    """
    beside = {"classes": "--classes", "tuples": "tuples"}.get(kind, "--groups" if grouped else "")
    for option in sorted(_REFUSED.get(beside, set()) & set(typed)):
        raise InputError(f"--{option.replace('_', '-')} goes with PAIRS, not with {beside}")


def refuse_together(together: str | None, records: str) -> None:
    """Refuse a column of people who change together beside records that hold several people.

    Examples
    --------
    >>> refuse_together("household", "tuples")
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: --together does not go with tuples: who changes with others may be in ...
    """
    if together is not None and records in ("groups", "tuples"):
        raise InputError(
            f"--together does not go with {records}: who changes with others may be in several of them"
        )


def make_learner(name: str, options: Mapping[str, Any], typed: Collection[str]) -> Any:
    """The learner with those options that it has as parameters.

    Parameters
    ----------
    options : mapping
        By parameter.
    typed : collection of str
        Options that were typed, and must not be ignored.
    """
    kind = learner_class(name)
    known = set(kind._get_param_names())
    for option in options:
        if option in typed and option not in known:
            raise InputError(f"--{option.replace('_', '-')} is no option of learner '{name}'")
    return kind(**{option: value for option, value in options.items() if option in known})
