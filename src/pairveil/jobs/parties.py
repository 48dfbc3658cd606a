"""`party` and `federate`, and the coordinator of `fit --parties`: several institutions learn one metric."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import numpy as np

from pairveil.errors import InputError, PartyError
from pairveil.jobs.job import FILES, OUTPUT, PRIVACY, RELEASE, Job, Telling, argument, option
from pairveil.jobs.options import (
    FEATURES_HELP,
    PAIRS_HELP,
    PairOptions,
    PeopleOptions,
    ScalingOptions,
    listed,
)
from pairveil.jobs.reading import (
    Source,
    Training,
    bring_to_scale,
    kept_of,
    read_column,
    read_rows,
    read_training,
)
from pairveil.jobs.spending import Spending, tell_epsilons, tell_released

_WAIT, _DAY = 600.0, 86_400.0


@dataclass(frozen=True, kw_only=True)
class JointOptions:
    """How several parties are counted together, and who draws the noise."""

    heading: ClassVar[str | None] = "Several parties"

    kappa_rule: Literal["sum", "union", "disjoint"] = option(
        "sum",
        "People in two institutions: add person kappas up, count the union of the graphs under a keyed "
        "hash of ids, or take every party's word that there are none.",
        typed=True,
    )
    noise: Literal["parties", "coordinator"] = option(
        "parties",
        "Who draws it. With 'coordinator' nothing is promised against the coordinator.",
        typed=True,
    )
    colluders: int = option(
        1, "Parties that may pool what they know with the coordinator.", min=1, typed=True
    )


@dataclass(frozen=True, kw_only=True)
class CoordinatorOptions(JointOptions):
    """Where a coordinator listens, and for how many."""

    heading: ClassVar[str | None] = "Several parties"

    parties: int | None = option(
        None,
        "Coordinate a fit of so many institutions, which join with `pairveil party`; no FEATURES and PAIRS "
        "here.",
        min=2,
        typed=True,
    )
    listen: str = option(
        "127.0.0.1:0", "HOST:PORT where parties join; port 0 takes a free one.", typed=True
    )
    wait: float = option(
        _WAIT, "Seconds that parties have to join, and each message to come.", min=1, max=_DAY
    )
    flower: str | None = option(
        None,
        "Connection of Flower's configuration: its SuperLink and SuperNodes carry what parties say.",
        typed=True,
    )


def coordinate_fit(job: Any, tell: Telling) -> None:
    """Wait for the parties of a `FitJob`, agree, learn, and write the release."""
    from pairveil.parties import coordinate, terms_for
    from pairveil.parties.agreement import trust_of
    from pairveil.parties.flower import submit
    from pairveil.parties.transport import listening
    from pairveil.release.release import check_folder

    _refuse(job, "features", "pairs", "classes", "groups", "ledger", "budget", "checkpoint", "bounds",
            "tune", "score", "dask", "graph_salt", "together", "report", "dry_run", "seed",
            "kappa")  # fmt: skip
    job.check_scaling("FEATURES", job.schema)
    check_folder(job.out, job.overwrite)
    host, _, port = job.listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError("--listen takes HOST:PORT, as 10.0.0.5:8788")
    schema, text = _public_schema(job)
    learner = job.model()
    terms = terms_for(
        learner, job.parties, kappa_rule=job.kappa_rule, noise=job.noise, colluders=job.colluders,
        schema=text,
    )  # fmt: skip
    with ExitStack() as open_:
        listener = open_.enter_context(listening(host, int(port)))
        tell.address(f"Parties join with: pairveil party ... --join {listener.invitation}")
        if job.flower is not None:
            submit(job.flower, listener.invitation, job.parties, job.wait)
        with tell.waiting(f"waiting for {job.parties} parties"):
            channels = listener.admit(job.parties, job.wait, job.wait)
        place = _Place(job.out, job.overwrite, open_, tell)
        with tell.progress(None) as show:
            joint = coordinate(terms, channels, on_step=show, agreed=place)
        _write(joint, place, schema, job, tell, {"trust": trust_of(joint.certificate)})


@dataclass
class _Place:
    """Tells what was agreed on and reserves the folder, while nobody was charged."""

    out: Path
    overwrite: bool
    open_: ExitStack
    tell: Telling
    compare: bool = False
    draft: Any = None

    def __call__(self, prepared: Any, fingerprint: str) -> None:
        from pairveil.learners.base import most_rows
        from pairveil.parties.agreement import trust_of
        from pairveil.release.metric import ReleasedMetric

        certificate, n = prepared.certificate, prepared.plan.n_features
        who = ", ".join(
            f"{one['name']} ({one['n_pairs_used']:,})" for one in certificate.parties["who"]
        )
        self.tell.say(f"Parties and the pairs they use: {who}.", trust_of(certificate))
        self.tell.address(f"Fingerprint of what was agreed on, the same for all: {fingerprint}")
        tell_epsilons(self.tell, certificate)
        if self.compare:
            typed = self.tell.ask("Type the fingerprint that another party reads to you:")
            if typed.split() != fingerprint.split():
                raise PartyError(
                    "what was typed is another fingerprint: unless it was misread, the coordinator told "
                    "parties different things"
                )
        rows = most_rows(prepared.recipe, n)
        reserved = ReleasedMetric.reserve(self.out, n, rows, overwrite=self.overwrite)
        self.draft = self.open_.enter_context(reserved)


def _write(
    joint: Any, place: _Place, schema: Any, job: Any, tell: Telling, more: dict[str, Any]
) -> None:
    """The release as the coordinator and every party write it: the same bytes, so that all can sign them."""
    from pairveil.release.metric import ReleasedMetric
    from pairveil.release.release import commit

    d = joint.components.shape[1]
    scale = np.ones(d) if schema is None else np.full(d, schema.factor(job.data_norm))
    metric = ReleasedMetric(
        joint.components * scale, joint.certificate, joint.columns, scale, schema
    )
    metric.save(place.draft)
    commit(place.draft, place.overwrite)
    names = [one["name"] for one in joint.certificate.parties["who"]]
    told = tell_released(tell, place.out, joint.certificate, None)
    tell.result({**told, "parties": names, "fingerprint": joint.fingerprint, **more})


def _public_schema(job: Any) -> tuple[Any, str | None]:
    """The schema of the columns that are used, and its text, by which all compare theirs."""
    from pairveil.schema.schema import read_schema, to_toml

    if job.schema is None:
        return None, None
    facts = read_schema(job.schema).only(listed(job.columns), listed(job.exclude) or [])
    return facts, to_toml(facts)


def _refuse(job: Any, *names: str) -> None:
    """Options that say nothing to several parties."""
    for name in names:
        if job.is_set(name):
            raise InputError(f"--{name.replace('_', '-')} does not go with several parties")


def _prepare_records(training: Training) -> Callable[[Any], Any]:
    """From a learner to the records made ready: nothing is planned."""
    from pairveil.parties.agreement import own_records

    return lambda learner: training.prepare(SimpleNamespace(prepare=partial(own_records, learner)))


@dataclass(frozen=True, kw_only=True)
class PartyJob(PeopleOptions, PairOptions, ScalingOptions, Spending, Job):
    """Take part in a fit of several institutions: nobody sees your sums, and your ledger is charged first.

    The terms are the coordinator's; what you do not consent to here is refused before anything is charged.

    Example: `pairveil party people.csv pairs.csv --schema schema.toml --name North --join 10.0.0.5:8788/KEY.TOKEN --ledger budget.json --budget 3`
    """  # noqa: E501

    name: ClassVar = "party"
    panel: ClassVar = RELEASE
    shown: ClassVar = (
        "join", "called", "schema", "id", "epsilon", "delta", "unit", "disjoint", "graph_key", "ledger",
        "budget", "out", "overwrite", "json", "quiet",
    )  # fmt: skip

    features: str = argument("FEATURES", FEATURES_HELP)
    pairs: str = argument("PAIRS", PAIRS_HELP)
    join: str = option(
        ..., "The line that the coordinator printed: HOST:PORT/KEY.TOKEN.", typed=True
    )
    flower: Path | None = option(
        None,
        "Socket that Flower's SuperNode here is configured with: it reaches the coordinator.",
        typed=True,
    )
    called: str = option(
        ..., "How the others call you: letters, digits, dots and dashes.", "--name"
    )
    out: Path = option(Path("release"), "Folder for the release, which all parties can sign.", "-o")
    unit: Literal["pair", "relationship", "person"] = option(
        "relationship", "What must be protected.", panel=PRIVACY
    )
    disjoint: bool = option(
        False,
        "Your word that nobody in your pairs is in another party's.",
        panel=PRIVACY,
        typed=True,
    )
    graph_key: Path | None = option(
        None,
        "Key of the hash of ids, the same at all parties and not the coordinator's: 16 bytes or more.",
        panel=PRIVACY,
    )
    trust_coordinator: bool = option(
        False, "Let the coordinator see totals and draw the noise.", panel=PRIVACY, typed=True
    )
    colluders: int = option(
        1, "Parties that must be allowed to collude, at least.", panel=PRIVACY, min=1, typed=True
    )
    compare: bool = option(
        False,
        "Sum nothing before you typed the fingerprint that another party reads to you.",
        panel=PRIVACY,
        typed=True,
    )
    wait: float = option(_WAIT, "Seconds that a message may take.", min=1, max=_DAY, panel=OUTPUT)

    def work(self, tell: Telling) -> None:
        """Read, join, agree, be charged, learn, and write the release."""
        from pairveil.foreign import read_regular
        from pairveil.parties import Consent, Party, take_part
        from pairveil.parties.agreement import trust_of
        from pairveil.parties.flower import through
        from pairveil.parties.transport import Invitation, join
        from pairveil.release.release import check_folder

        _refuse(self, "seed", "checkpoint", "bounds", "together")
        self.check_scaling(self.features, self.schema)
        self.check_spending()
        check_folder(self.out, self.overwrite)
        invitation = Invitation.read(self.join)
        schema, text = _public_schema(self)
        training = read_training(Source(self.features, self.pairs, "pairs"), self, self, self)
        rules = [
            "sum",
            *(["disjoint"] if self.disjoint else []),
            *(["union"] if self.graph_key else []),
        ]
        consent = Consent(
            self.epsilon, self.delta, self.unit, tuple(rules), self.trust_coordinator, self.colluders, text,
            adjacency=self.adjacency, data_norm=self.data_norm,
        )  # fmt: skip
        party = Party(
            self.called,
            _prepare_records(training),
            consent,
            self.open_ledger(),
            None if self.graph_key is None else read_regular(self.graph_key, 1 << 16),
            training.names,
        )
        with ExitStack() as open_:
            place = _Place(self.out, self.overwrite, open_, tell, compare=self.compare)
            with tell.waiting("waiting for the others"):
                reach = {} if self.flower is None else {"reach": through(self.flower)}
                channel = join(invitation, self.wait, **reach)
            with tell.progress(None) as show:
                joint = take_part(channel, party, show, place)
            _write(joint, place, schema, self, tell, {"trust": trust_of(joint.certificate)})
            tell.say(f"Compare the fingerprint, then sign: pairveil sign {self.out} --key KEY")


@dataclass(frozen=True, kw_only=True)
class FederateJob(PeopleOptions, PairOptions, ScalingOptions, JointOptions, Spending, Job):
    """Rehearse a fit of several institutions on one machine: all that they would say, and what it costs.

    Pairs across sites belong to nobody and are left out. The result is not for release.

    Example: `pairveil federate simulate people.csv pairs.csv --site hospital --schema schema.toml`
    """

    name: ClassVar = "federate"
    panel: ClassVar = RELEASE
    shown: ClassVar = (
        "site", "schema", "id", "epsilon", "delta", "unit", "kappa_rule", "noise", "colluders", "seed",
        "json", "quiet",
    )  # fmt: skip

    what: str = option(..., "'simulate'.", metavar="simulate", choices=("simulate",))
    features: str = argument("FEATURES", FEATURES_HELP)
    pairs: str = argument("PAIRS", PAIRS_HELP)
    site: str = option(..., "Column of FEATURES that says who is a patient where.", panel=FILES)
    unit: Literal["pair", "relationship", "person"] = option(
        "relationship", "What is protected.", panel=PRIVACY
    )

    def work(self, tell: Telling) -> None:
        """Divide people by site, and fit."""
        from pairveil.learners.contrastive.learner import DPPMetricLearner
        from pairveil.parties import simulate
        from pairveil.parties.agreement import trust_of
        from pairveil.parties.rehearsal import line

        _refuse(self, "ledger", "budget", "checkpoint", "overwrite", "bounds", "together")
        self.check_scaling(self.features, self.schema)
        parts, n_across = self._parts()
        learner = DPPMetricLearner(
            self.epsilon, self.delta, self.unit, adjacency=self.adjacency, random_state=self.seed,
            data_norm=self.data_norm,
        )  # fmt: skip
        lines = [line(_WAIT) for _ in parts]
        with tell.progress(None) as show:
            joint = simulate(
                learner, list(parts.values()), kappa_rule=self.kappa_rule, noise=self.noise,
                colluders=self.colluders, lines=lines, on_step=show,
                graph_key=b"a rehearsal's key" if self.kappa_rule == "union" else None,
            )  # fmt: skip
        certificate, who = joint.certificate, (joint.certificate.parties or {})["who"]
        sent = [theirs.n_bytes for _, theirs in lines]
        rows = [
            [site, f"{one['n_pairs_used']:,}", one["kappas"]["person"], f"{n_bytes:,}"]
            for site, one, n_bytes in zip(parts, who, sent, strict=True)
        ]
        tell.table("Who took part", ["site", "pairs used", "person kappa", "bytes sent"], rows)
        tell_epsilons(tell, certificate)
        tell.say(f"{n_across:,} pairs across sites were left out.", trust_of(certificate))
        tell.result(
            {
                "certificate": certificate.to_dict(),
                "parties": list(parts),
                "bytes_sent": sent,
                "n_pairs_across": n_across,
                "trust": trust_of(certificate),
            }
        )

    def _parts(self) -> tuple[dict[str, Any], int]:
        """Each site's pairs, and how many pairs are of people of two sites."""
        from pairveil.records.pairset import PairSet

        sites = read_column(self.features, self.site, "--site")
        raw, facts = read_rows(
            Path(self.features), self, self.merge_similar_ids, [self.site], self.leave_out
        )
        people = bring_to_scale(raw, facts, self)[0]
        whole = PairSet.join(
            people, self.sifted(people, self.read_pairs(self.pairs, whole=True))[0]
        )
        of = np.array([str(one) for one in kept_of(people, sites)], dtype=object)
        left, right = of[whole.pairs[:, 0]], of[whole.pairs[:, 1]]
        found = {}
        for site in sorted(set(left[left == right].tolist())):
            here, own = np.flatnonzero((left == site) & (right == site)), np.flatnonzero(of == site)
            place = np.full(whole.n_people, -1)
            place[own] = np.arange(len(own))
            found[site] = PairSet(
                whole.features[own], place[whole.pairs[here]], whole.labels[here],
                None if whole.ids is None else whole.ids[own], whole.feature_names,
            )  # fmt: skip
        if len(found) < 2:
            raise InputError(f"--site {self.site}: pairs inside of two sites at least are needed")
        return found, int((left != right).sum())
