"""What will be asked of the data during a fit, fixed before any data are touched.

A plan is a tuple of queries and a few public numbers. The same frozen object tells the engine what to
run and the accountant what was run, so the two cannot disagree. A *recipe* is the heart of a
learner: which queries it asks for, and how it makes a model of the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pairveil.errors import InputError
from pairveil.privacy.events import Event
from pairveil.privacy.mechanisms import GAUSSIAN, Budget, Mechanism, Query, Sampling

if TYPE_CHECKING:
    from pairveil.engine.engine import Engine


class Setting(NamedTuple):
    """The public numbers that a recipe may plan with.

    Attributes
    ----------
    budget : Budget
    n_records, n_features : int
    data_norm : float
        Public bound on a person's l2 norm.
    mechanism : Mechanism
    records : {'pairs', 'groups', 'people', 'choices', 'workers'}
    """

    budget: Budget
    n_records: int
    n_features: int
    data_norm: float = 1.0
    mechanism: Mechanism = GAUSSIAN
    records: str = "pairs"


class Ask(NamedTuple):
    """A query that a recipe wants, and the share of the budget it is worth.

    Attributes
    ----------
    name : str
    shape : tuple of int
        The most numbers that an answer may have.
    share : float
        Part of mu^2 (Gaussian) or of epsilon (Laplace). Poisson-sampled queries get what the others
        leave; at most one of them is allowed.
    choice : bool
        A noisy choice among that many candidates instead of a noisy sum: ``steps`` choices, each from all
        records. Whether one is asked must follow from public numbers (docs/theory/choice.md).
    steps, sampling, sample_rate
        As in `Query`.
    """

    name: str
    shape: tuple[int, ...]
    share: float
    steps: int = 1
    sampling: Sampling = "poisson"
    sample_rate: float = 1.0
    choice: bool = False


@dataclass(frozen=True)
class Plan:
    """All queries of one fit, and the public numbers its training may use.

    Parameters
    ----------
    queries : tuple of Query
        In the order in which they are first asked.
    n_records, n_features : int
    data_norm : float
        Public bound on a person's norm.
    options : mapping
        The recipe's public parameters, for the certificate.

    Examples
    --------
    >>> plan = Plan((Query("survey", (4,), 20.0),), n_records=9, n_features=2)
    >>> plan["survey"].noise_multiplier, "contest" in plan
    (20.0, False)
    """

    queries: tuple[Query, ...]
    n_records: int
    n_features: int
    data_norm: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Query:
        for query in self.queries:
            if query.name == name:
                return query
        raise InputError(
            f"the plan has no query '{name}': `ask` must name every query that `run` asks"
        )

    def __contains__(self, name: object) -> bool:
        return any(query.name == name for query in self.queries)

    def events(self) -> tuple[Event, ...]:
        """What the accountant is told: one event for each query."""
        return tuple(query.event() for query in self.queries)

    def to_dict(self) -> dict[str, Any]:
        """Public description for the certificate."""
        return {
            "releases": [query.to_dict() for query in self.queries],
            "n_features": self.n_features,
            "data_norm": self.data_norm,
            **self.options,
        }


class Recipe(Protocol):
    """The heart of a learner: which queries it asks, and what model it makes of the answers."""

    @property
    def headline(self) -> str:
        """The query whose noise stands for the fit (``noise_multiplier_``)."""
        ...

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """Which queries are asked, and how the budget is divided over them; from public numbers alone."""
        ...

    def run(self, plan: Plan, engine: Engine) -> Any:
        """The model, from the engine's answers alone."""
        ...

    def options(self) -> dict[str, Any]:
        """Public parameters, for the certificate."""
        ...
