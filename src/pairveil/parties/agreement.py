"""A fit that several parties make together: they agree, each is charged, and all run one recipe.

1. The coordinator sends its *terms*: learner, options, how kappa is counted, who draws the noise.
2. Each party, if it consents, *joins*: a key for this fit, and what is public of its records.
3. The coordinator sends the *roster*: everybody's public numbers, and the digest of the certificate that
   follows. Each party makes the certificate itself from the same numbers, asks its own ledger whether it
   would allow it, and is *ready*. Up to here anybody can refuse, and nothing was charged.
4. *Begin*: each party charges its ledger, then all run the recipe (`pairveil.engine.backends.parties`).
5. *Finished*: the coordinator sends what it will release; a party that comes to the same can sign it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from pairveil import __version__
from pairveil.array_types import FloatArray
from pairveil.engine.backends import parties as wire
from pairveil.engine.backends.local import backend_for
from pairveil.engine.backends.parties import (
    COORDINATOR,
    Channel,
    Gathering,
    JointRecords,
    Masks,
    OneOfSeveral,
    receive,
    send,
)
from pairveil.errors import BudgetError, InputError, PartyError
from pairveil.graph.kappa import graph_digest, kappa
from pairveil.learners import LEARNERS, learner_class
from pairveil.learners.preparing import PARTIES_NEED, Prepared, PreparedRecords, plan_fit
from pairveil.privacy.certificate import Certificate, joint_kappas, parties_of
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import GAUSSIAN, mechanism_named
from pairveil.privacy.noise import NoiseSource, PartiesNoise, SeededNoise, TrustedNoise
from pairveil.privacy.units import (
    KAPPA_RULES,
    PARTIES,
    REHEARSED,
    SELECTED_CAVEAT,
    UNITS,
    Adjacency,
)
from pairveil.records.identity import spelt
from pairveil.records.kinds import KINDS, PAIRS

OnStep = Callable[[float, float], None]
Known = dict[str, int]
_HASH = 16  # bytes of a person's keyed hash
_LARGE = 1 << 28  # bytes of a joining party whose graph is hashed: four million pairs
_OWN = ("accountant", "preprocessor", "backend", "schema", "bounds", "verbose", "kappa")
"""Parameters that say nothing to others, or that several parties cannot share: no terms may set them."""


class Disagreement(PartyError):
    """Somebody does not agree; nothing was charged, and the reason may be told to everybody."""


# ---- what everybody computes from the same public numbers ----------------------------------------


def terms_for(
    learner: Any,
    n_parties: int,
    *,
    kappa_rule: wire.Rule = "sum",
    noise: wire.NoiseBy = "parties",
    colluders: int = 1,
    schema: str | None = None,
    rehearsal: bool = False,
) -> wire.Terms:
    """What a coordinator proposes.

    Parameters
    ----------
    learner : PrivateLearner
        One of `pairveil.learners.LEARNERS` that learns from pairs; its parameters are the terms.
    n_parties : int
    kappa_rule : {'sum', 'union', 'disjoint'}
        How kappa follows from the parties' graphs (docs/theory/parties.md).
    noise : {'parties', 'coordinator'}
        Who draws it. With 'coordinator' nothing is promised against the coordinator.
    colluders : int
        How many parties may pool what they know with the coordinator. A party that looks at the total and
        takes its own noise off is one.
    schema : str, optional
        The TOML by which raw columns become numbers.
    rehearsal : bool
        All parties are on one machine: not for release.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner
    >>> terms_for(DPPMetricLearner(epsilon=0.5), 3).options["epsilon"]
    0.5
    """
    kind = type(learner)
    place = f"{kind.__module__}:{kind.__qualname__}"
    name = next((name for name in LEARNERS if learner_class(name) is kind), None)
    if name is None:
        raise InputError(
            f"{place} is no learner that every party has: one of {', '.join(LEARNERS)}"
        )
    if getattr(learner, "kappa", "auto") != "auto":
        raise InputError("kappa follows from the graphs of all parties: leave kappa='auto'")
    options = {k: v for k, v in learner.get_params(deep=False).items() if k not in _OWN}
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in options.items()}
    if not all(v is None or isinstance(v, bool | int | float | str) for v in plain.values()):
        raise InputError(
            "several parties share options that are numbers or words: random_state too"
        )
    pure = mechanism_named(plain.get("mechanism", GAUSSIAN.name)).is_pure
    if pure or not math.isfinite(learner.epsilon):
        raise InputError(PARTIES_NEED)
    if n_parties < 2:
        raise InputError("several parties are two at least; `pairveil fit` is for one")
    least = 1 if noise == "parties" else 0
    if not least <= colluders < n_parties:
        raise InputError(
            f"colluders must be at least {least} and fewer than the {n_parties} parties: a party knows its "
            "own noise, so against it the others' must suffice"
        )
    return wire.Terms(
        wire.PROTOCOL, __version__, secrets.token_bytes(32), name, plain, n_parties, kappa_rule, noise,
        colluders if noise == "parties" else 0, digest_of_schema(schema), rehearsal,
    )  # fmt: skip


def digest_of_schema(schema: str | None) -> str | None:
    """What a schema's TOML is compared by."""
    return None if schema is None else hashlib.sha256(schema.encode()).hexdigest()


def learner_of(terms: wire.Terms, ledger: PrivacyLedger | None = None) -> Any:
    """The learner that terms name; only our own, since a message must not choose what code is run."""
    if terms.learner not in LEARNERS:
        raise Disagreement("the terms name a learner that this pairveil does not have")
    if set(terms.options) & set(_OWN):  # files, clusters and ledgers are no coordinator's to name
        raise Disagreement("the terms set what is each party's own")
    options: dict[str, Any] = dict(terms.options)
    try:
        return learner_class(terms.learner)(**options, accountant=ledger)
    except TypeError:
        raise Disagreement("the terms name options that the learner does not have") from None


def prepared_for(
    terms: wire.Terms, roster: wire.Roster, learner: Any, records: JointRecords, noise: NoiseSource
) -> Prepared:
    """Plan and certificate of all parties together: the same to whoever computes it."""
    who = [
        {
            "name": one.name,
            "n_pairs_given": one.n_pairs_given,
            "n_pairs_used": one.n_pairs_used,
            "kappas": dict(one.kappas),
        }
        for one in roster.who
    ]
    given, used = (
        sum(getattr(one, f"n_pairs_{which}") for one in roster.who) for which in ("given", "used")
    )
    parameters = learner._parameters()
    learner._check(parameters, records.n_features)
    public = [PARTIES, KAPPA_RULES[terms.kappa_rule], *([REHEARSED] if terms.rehearsal else [])]
    joint = PreparedRecords(
        given=replace(records, n_records=given),
        used=records,
        used_rows=range(used),
        costs=PAIRS.costs({unit: roster.kappas_used[unit] for unit in UNITS}),
        selection={
            "how": parameters.select,
            "caveat": SELECTED_CAVEAT if used < given else None,
            "full_graph_relationship_kappa": roster.kappas_given["relationship"],
        },
        public=tuple(public),
        for_release=not terms.rehearsal,
        parties={
            "who": who,
            "kappa_rule": terms.kappa_rule,
            "noise": terms.noise,
            "colluders": terms.colluders,
            "secrecy": "computational",
        },
    )
    return plan_fit(learner._recipe(parameters, joint), parameters, joint, noise)


def promise_of(prepared: Prepared) -> str:
    """A digest of a planned certificate, in nine digits: other machines round the last ones otherwise."""
    assert prepared.certificate is not None
    return digest_of_certificate(prepared.certificate)


def digest_of_certificate(certificate: Certificate) -> str:
    """What two certificates of one plan have in common, whoever computed them."""
    stated = certificate.to_dict()
    stated.pop("versions")
    text = json.dumps(_rounded(stated), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _agreement(terms: wire.Terms, roster: wire.Roster) -> bytes:
    """A digest of all that the coordinator tells before the first sum."""
    return hashlib.sha256(wire.as_sent(terms) + wire.as_sent(roster)).digest()


def fingerprint_of(agreement: bytes) -> str:
    """What people compare: so long that nobody finds two agreements with one fingerprint.

    Whoever exchanges keys tells two parties different rosters and can try many keys for each: half as many
    bits as are compared must be out of reach.
    """
    return agreement[:20].hex(" ", 2)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return f"{value:.8e}" if isinstance(value, float) else value


def noise_of(terms: wire.Terms, place: int = 0) -> NoiseSource:
    """Where noise comes from, the coordinator's (0) or a party's (1, 2, ...)."""
    seed = terms.options.get("random_state")
    if seed is not None:
        return SeededNoise(np.random.default_rng([int(seed), place] if place else int(seed)))
    return PartiesNoise() if terms.noise == "parties" else TrustedNoise()


# ---- the graph of all parties --------------------------------------------------------------------


def hashed(ids: Any, key: bytes) -> np.ndarray[Any, Any]:
    """Keyed hashes of people's ids, 16 bytes each: equal where ids mean the same under one key, else unlike.

    Nobody sees ids of two parties side by side, so nobody could warn of one person under two spellings, who
    would be counted as two. What differs in case, spaces or Unicode form alone is one, and so is a number.

    Examples
    --------
    >>> one, other = hashed(["ann", 7], b"k" * 32), hashed(["007", "Ann "], b"k" * 32)
    >>> bool((one[::-1] == other).all())
    True
    """
    if len(key) < 16:
        raise InputError("the key of the hash needs at least 16 bytes")
    made = b"".join(
        hmac.new(key, spelt(str(one)).encode("utf-8", "surrogatepass"), hashlib.sha256).digest()[
            :_HASH
        ]
        for one in np.asarray(ids, dtype=object).tolist()
    )
    return np.frombuffer(made, dtype=np.uint8).reshape(-1, _HASH)


def _union(joined: Sequence[wire.Joining]) -> tuple[Known, Known]:
    """Kappas of all given pairs and of all used ones, in the union of the parties' hashed graphs."""
    edges, used = [], []
    for one in joined:
        n = one.n_pairs_given
        if one.same_key != joined[0].same_key:
            raise Disagreement(
                f"party '{one.name}' hashed ids with another key than party '{joined[0].name}', and nobody "
                "would be found at both: --graph-key takes the same bytes everywhere"
            )
        if len(one.edges) != 2 * _HASH * n or len(one.used) != -(-n // 8):
            raise Disagreement(f"party '{one.name}' sent no hashed ids of its pairs: --graph-key")
        edges.append(np.frombuffer(one.edges, dtype=f"V{_HASH}").reshape(n, 2))
        if (edges[-1][:, 0] == edges[-1][:, 1]).any():
            raise Disagreement(f"party '{one.name}' pairs somebody with herself")
        used.append(np.unpackbits(np.frombuffer(one.used, dtype=np.uint8), count=n).astype(bool))
        if used[-1].sum() != one.n_pairs_used:
            raise Disagreement(f"party '{one.name}' says two things of how many pairs it uses")
    every = np.concatenate(edges)
    numbers = np.unique(every.ravel(), return_inverse=True)[1].reshape(-1, 2)
    whole, taken = kappa(numbers), kappa(numbers[np.concatenate(used)])
    return {unit: whole.of(unit) for unit in UNITS}, {unit: taken.of(unit) for unit in UNITS}


def _together(terms: wire.Terms, joined: Sequence[wire.Joining]) -> tuple[Known, Known]:
    if terms.kappa_rule == "union":
        return _union(joined)
    given = joint_kappas(terms.kappa_rule, [dict(one.kappas_given) for one in joined])
    return given, joint_kappas(terms.kappa_rule, [dict(one.kappas_used) for one in joined])


def _records(joined: Sequence[Any], first: wire.Joining, backend: Any = None) -> JointRecords:
    names = sorted(f"{one.name}:{one.graph}" for one in joined)
    graph = "parties:" + hashlib.sha256("\n".join(names).encode()).hexdigest()
    used = sum(one.n_pairs_used for one in joined)
    columns = None if first.columns is None else tuple(first.columns)
    return JointRecords(used, first.n_features, columns, graph, backend)


# ---- a party -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Consent:
    """What a party agrees to; anything else is refused before it is charged.

    Attributes
    ----------
    epsilon, delta : float
        At most.
    unit : str or None
        What must be protected; None takes any.
    adjacency : {'zero-out', 'replace'}
        What epsilon must compare; who asks for 'zero-out' takes 'replace' too, which promises more.
    rules : tuple of str
        How kappa may be counted. 'disjoint' is this party's word that nobody in its pairs is in another's.
    trusts_coordinator : bool
        Whether the coordinator may draw the noise, who then sees the totals.
    colluders : int
        How many parties must be allowed to collude, at least.
    schema : str or None
        The TOML that brings this party's columns to scale.
    rehearsal : bool
        Whether this is one.
    data_norm : float or None
        What this party's rows were brought to; None: to whatever the terms say.
    """

    epsilon: float
    delta: float = 1e-5
    unit: str | None = None
    rules: tuple[str, ...] = ("sum",)
    trusts_coordinator: bool = False
    colluders: int = 1
    schema: str | None = None
    rehearsal: bool = False
    adjacency: Adjacency = "zero-out"
    data_norm: float | None = None

    def check(self, terms: wire.Terms) -> None:
        """Refuse terms that this party does not consent to."""
        wanted, delta = terms.options.get("epsilon"), terms.options.get("delta")
        said = {
            "it runs another version of pairveil": (terms.protocol, terms.version)
            == (wire.PROTOCOL, __version__),
            "it has another schema": digest_of_schema(self.schema) == terms.schema,
            f"its rows were brought to data norm {self.data_norm}": self.data_norm
            in (None, terms.options.get("data_norm")),
            f"it allows epsilon {self.epsilon:g} at most": isinstance(wanted, int | float)
            and wanted <= self.epsilon,
            f"it allows delta {self.delta:g} at most": isinstance(delta, int | float)
            and delta <= self.delta,
            f"it asks for unit '{self.unit}'": self.unit in (None, terms.options.get("unit")),
            f"it asks for adjacency '{self.adjacency}'": terms.options.get("adjacency", "zero-out")
            in (self.adjacency, "replace"),
            f"it does not agree to kappa by '{terms.kappa_rule}'": terms.kappa_rule in self.rules,
            "it does not trust the coordinator with totals": terms.noise == "parties"
            or self.trusts_coordinator,
            f"it asks for {self.colluders} colluders at least": terms.noise == "coordinator"
            or terms.colluders >= self.colluders,
            "seeded noise can be taken off again": terms.options.get("random_state") is None
            or self.rehearsal,
            "a rehearsal is no fit": terms.rehearsal == self.rehearsal,
        }
        for reason, holds in said.items():
            if not holds:
                raise Disagreement(f"{reason}; the terms say otherwise")


@dataclass(frozen=True)
class Party:
    """One institution that takes part.

    Attributes
    ----------
    name : str
        How the others call it.
    records : callable
        From a learner to this party's records, clipped and selected: `own_records` of pairs.
    consent : Consent
    ledger : PrivacyLedger or None
        Charged before the first sum.
    graph_key : bytes or None
        Of the hash of ids, shared by the parties and not with the coordinator.
    columns : sequence of str or None
        Names of the columns, where the records do not know them.
    """

    name: str
    records: Callable[[Any], PreparedRecords]
    consent: Consent
    ledger: PrivacyLedger | None = None
    graph_key: bytes | None = field(default=None, repr=False)
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        try:
            msgspec.convert(self.name, wire.Name)
        except msgspec.ValidationError:
            raise InputError(
                "a party's name has 1 to 40 letters, digits, spaces, dots, dashes and underscores (A-Z, a-z, "
                "0-9), and starts with a letter or digit"
            ) from None


def own_records(learner: Any, pairs: Any, y: Any = None) -> PreparedRecords:
    """A party's records as the learner's parameters take them; nothing is planned and nothing spent."""
    given = learner._parameters()
    found = learner._resolve(given, pairs, y)
    learner._check(given, found.data.n_features)
    made: PreparedRecords = learner._prepare_records(given, found)
    return made


@dataclass(frozen=True)
class Joint:
    """A fit that several parties made."""

    learner: Any  # fitted
    certificate: Certificate
    # Of terms and roster: the same for everybody, or the coordinator told parties different things.
    fingerprint: str
    finished: wire.Finished  # what the coordinator releases
    columns: tuple[str, ...] | None = None  # as the parties name them

    @property
    def components(self) -> FloatArray:
        """The metric as the coordinator releases it, for numbers as the learner saw them."""
        rows = self.finished.n_components
        return np.frombuffer(self.finished.components, dtype="<f8").reshape(rows, -1).astype(float)


def take_part(
    channel: Channel,
    party: Party,
    on_step: OnStep | None = None,
    agreed: Callable[[Prepared, str], None] | None = None,
) -> Joint:
    """Agree, be charged, and learn; refuses before it is charged whatever the party does not consent to.

    Raises
    ------
    PartyError
        Somebody left, or said what cannot be gone on with; the message names who.
    BudgetError
        The party's ledger does not allow it.
    """
    said = "no ledger was charged"
    try:
        with _refusing([channel], party.name):
            ready = _get_ready(channel, party, agreed)
            if party.ledger is not None:  # before anything else is said
                said = "the ledger was charged for this fit and stays charged"
            return _learn(channel, *ready, on_step)
    except PartyError as problem:
        raise PartyError(f"{problem}; {said}") from None


def _get_ready(
    channel: Channel, party: Party, agreed: Callable[[Prepared, str], None] | None
) -> tuple[Any, Prepared, str]:
    terms = receive(channel, wire.Terms, COORDINATOR)
    party.consent.check(terms)
    learner = learner_of(terms, party.ledger)
    own = _usable(party.records(learner))
    key = X25519PrivateKey.generate()
    mine = _joining(party, terms, own, key.public_key().public_bytes_raw())
    send(channel, mine, COORDINATOR)
    roster = receive(channel, wire.Roster, COORDINATOR, _LARGE)
    _check_roster(terms, roster, mine)
    keys = {one.name: one.key for one in roster.who}
    place = 1 + sorted(keys).index(party.name)
    agreement = _agreement(terms, roster)
    masks, noise = Masks(key, keys, party.name, agreement), noise_of(terms, place)
    n_records = sum(one.n_pairs_used for one in roster.who)
    shares = terms.n_parties - terms.colluders if terms.noise == "parties" else None
    sums = backend_for(_in_doubles(own.used), "auto")
    backend = OneOfSeveral(channel, sums, masks, n_records, shares)
    records = _records(roster.who, mine, backend)
    prepared = prepared_for(terms, roster, learner, records, noise)
    if promise_of(prepared) != roster.promise:
        raise Disagreement(
            "it comes to another plan or certificate: are the versions of numpy alike?"
        )
    if party.ledger is not None:
        party.ledger.quote(**prepared.cost())  # refuses while nobody was charged
    fingerprint = fingerprint_of(agreement)
    if agreed is not None:
        agreed(prepared, fingerprint)
    send(channel, wire.Ready(promise_of(prepared)), COORDINATOR)
    receive(channel, wire.Begin, COORDINATOR)
    return learner, prepared, fingerprint


def _learn(
    channel: Channel, learner: Any, prepared: Prepared, fingerprint: str, on_step: OnStep | None
) -> Joint:
    learner.fit(prepared, on_step=on_step)  # charges first
    finished = receive(
        channel, wire.Finished, COORDINATOR, 8 * learner.components_.size + wire.SMALL
    )
    certificate = None
    with suppress(InputError):
        certificate = Certificate.from_json(finished.certificate)
    if certificate is None or digest_of_certificate(certificate) != promise_of(prepared):
        raise PartyError("the coordinator finished with another certificate than was agreed on")
    names = prepared.records.used.feature_names
    joint = Joint(learner, certificate, fingerprint, finished, names)
    ours, rows = learner.components_, finished.n_components
    alike = rows == len(ours) and len(finished.components) == 8 * ours.size
    if not alike or not _same_metric(joint.components, ours):
        raise PartyError(
            "the coordinator finished with another metric than follows from the totals"
        )
    return joint


def _same_metric(one: FloatArray, other: FloatArray) -> bool:
    """Whether W'W of both is the same: machines turn rows of W that have equal lengths differently."""
    probes = np.random.default_rng().normal(size=(one.shape[1], 8))
    found, wanted = (W.T @ (W @ probes) for W in (one, other))
    return bool(np.abs(found - wanted).max() <= 1e-6 * np.abs(wanted).max())


def _usable(records: PreparedRecords) -> PreparedRecords:
    """Refuse records that several parties have no proof for."""
    if not KINDS[records.kind].pairwise:
        raise Disagreement(f"several parties learn from single pairs, and it has {records.kind}")
    if records.meanings:
        raise Disagreement("people who change together are not counted across parties")
    if not records.for_release:
        raise Disagreement("its people were recognised by equal rows: they need ids or row numbers")
    return records


def _in_doubles(records: Any) -> Any:
    """Features in float64: compiled loops err more in float32, and the noise is scaled for one of them."""
    features = records.features
    if features.dtype == np.float64:
        return records
    return records.with_features(features.astype(np.float64))


def _joining(party: Party, terms: wire.Terms, records: PreparedRecords, key: bytes) -> wire.Joining:
    given, used = records.given, records.used
    assert records.given_kappa is not None
    assert records.used_kappa is not None
    columns = party.columns if party.columns is not None else used.feature_names
    # Row 3 of two tables is two people: pairs of row numbers are never the same pairs to a ledger.
    named = graph_digest(used) or secrets.token_hex(32)
    graph = hashlib.sha256(f"pairveil party {named}".encode()).hexdigest()
    same_key = edges = bits = b""
    if terms.kappa_rule == "union":
        if party.graph_key is None or given.ids is None:
            raise Disagreement("it has no key to hash the ids of its pairs with, or no ids")
        ends = hashed(given.ids, party.graph_key)[np.asarray(given.pairs)]
        if (ends[:, 0] == ends[:, 1]).all(axis=1).any():
            raise Disagreement(
                "two ids of one of its pairs differ in case, spaces or zeros alone: are they one person?"
            )
        about = b"pairveil parties graph key" + terms.session
        same_key, edges = hmac.digest(party.graph_key, about, "sha256"), ends.tobytes()
        taken = np.zeros(given.n_pairs, dtype=bool)
        taken[_places(given, used)] = True
        bits = np.packbits(taken).tobytes()
    return wire.Joining(
        name=party.name,
        key=key,
        columns=None if columns is None else list(columns),
        n_features=used.n_features,
        n_pairs_given=given.n_pairs,
        n_pairs_used=used.n_pairs,
        kappas_given={unit: records.given_kappa.of(unit) for unit in UNITS},
        kappas_used={unit: records.used_kappa.of(unit) for unit in UNITS},
        graph=graph,
        same_key=same_key,
        edges=edges,
        used=bits,
    )


def _places(given: Any, used: Any) -> Any:
    """Which of the given pairs the used ones are: both are in canonical order, and no pair is there twice."""
    n = int(given.n_people)
    every, taken = (
        np.sort(np.asarray(one.pairs, dtype=np.int64), axis=1) @ np.array([n, 1])
        for one in (given, used)
    )
    return np.flatnonzero(np.isin(every, taken))


def _check_roster(terms: wire.Terms, roster: wire.Roster, mine: wire.Joining) -> None:
    """Refuse a roster that contradicts the terms, this party's own numbers, or itself."""
    own = [one for one in roster.who if one.name == mine.name]
    stated = wire.Member(
        mine.name, mine.key, mine.n_pairs_given, mine.n_pairs_used, mine.kappas_used, mine.graph
    )
    names = {one.name for one in roster.who}
    if not len(roster.who) == len(names) == terms.n_parties or own != [stated]:
        raise Disagreement("the coordinator lists other parties or numbers than were stated")
    others = [dict(one.kappas) for one in roster.who if one.name != mine.name]
    for stated_kappas, ours in (
        (roster.kappas_given, mine.kappas_given),
        (roster.kappas_used, mine.kappas_used),
    ):
        known, least = dict(stated_kappas), joint_kappas(terms.kappa_rule, [*others, dict(ours)])
        if set(known) != set(UNITS) or any(known[unit] < least[unit] for unit in UNITS):
            raise Disagreement("the coordinator counts a smaller kappa than the parties' own give")


# ---- the coordinator -----------------------------------------------------------------------------


def coordinate(
    terms: wire.Terms,
    channels: Sequence[Channel],
    *,
    on_step: OnStep | None = None,
    agreed: Callable[[Prepared, str], None] | None = None,
) -> Joint:
    """Bring parties together and learn from their masked sums.

    Parameters
    ----------
    terms : Terms
        Of `terms_for`.
    channels : sequence of Channel
        One to each party, in any order.
    on_step : callable, optional
        As for ``fit``.
    agreed : callable, optional
        Called with the prepared fit and the fingerprint, before anybody is charged.

    Raises PartyError: somebody left, or said what cannot be gone on with; the message names who.
    """
    with _refusing(channels):
        return _coordinate(terms, channels, on_step, agreed)


def _coordinate(
    terms: wire.Terms,
    channels: Sequence[Channel],
    on_step: OnStep | None,
    agreed: Callable[[Prepared, str], None] | None,
) -> Joint:
    if len(channels) != terms.n_parties:
        raise InputError(f"{terms.n_parties} parties were announced, and {len(channels)} are there")
    learner = learner_of(terms)
    most = _LARGE if terms.kappa_rule == "union" else wire.SMALL
    for place, channel in enumerate(channels, 1):
        send(channel, terms, f"party {place}")
    joined = [
        receive(channel, wire.Joining, f"party {place}", most)
        for place, channel in enumerate(channels, 1)
    ]
    _check_joined(joined)
    by_name = {one.name: channel for one, channel in zip(joined, channels, strict=True)}
    given, used = _together(terms, joined)
    n_records = sum(one.n_pairs_used for one in joined)
    backend = Gathering(by_name, n_records, in_shares=terms.noise == "parties")
    who = [
        wire.Member(
            one.name, one.key, one.n_pairs_given, one.n_pairs_used, one.kappas_used, one.graph
        )
        for one in sorted(joined, key=lambda one: one.name)
    ]
    roster = wire.Roster(who, given, used, "0" * 64)
    records = _records(who, joined[0], backend)
    prepared = prepared_for(terms, roster, learner, records, noise_of(terms))
    roster.promise = promise_of(prepared)
    for name, channel in by_name.items():
        send(channel, roster, f"party '{name}'")
    for name, channel in by_name.items():
        ready = receive(channel, wire.Ready, f"party '{name}'")
        if ready.promise != roster.promise:
            raise Disagreement(f"party '{name}' comes to another plan or certificate")
    fingerprint = fingerprint_of(_agreement(terms, roster))
    if agreed is not None:
        agreed(prepared, fingerprint)
    for name, channel in by_name.items():
        send(channel, wire.Begin(), f"party '{name}'")
    learner.fit(prepared, on_step=on_step)
    certificate, components = learner.certificate_, np.asarray(learner.components_)
    finished = wire.Finished(
        components.astype("<f8").tobytes(), len(components), certificate.to_json()
    )
    for channel in channels:
        # All is released by now: whoever has gone gets it from another party.
        with suppress(PartyError):
            send(channel, finished, "")
    return Joint(learner, certificate, fingerprint, finished, records.feature_names)


def _check_joined(joined: Sequence[wire.Joining]) -> None:
    """Refuse two of one name, and tables whose columns are not the same."""
    first, names = joined[0], [one.name for one in joined]
    for one in joined:
        if names.count(one.name) > 1:
            raise Disagreement(f"two parties call themselves '{one.name}': choose other names")
        if (one.n_features, one.columns) != (first.n_features, first.columns):
            raise Disagreement(
                f"party '{one.name}' has other columns than party '{first.name}': use one schema"
            )
        if any(set(known) != set(UNITS) for known in (one.kappas_given, one.kappas_used)):
            raise Disagreement(f"party '{one.name}' does not state all of its kappas")
        if one.n_pairs_used > one.n_pairs_given:
            raise Disagreement(f"party '{one.name}' uses more pairs than it has")


@contextmanager
def _refusing(channels: Sequence[Channel], name: str | None = None) -> Iterator[None]:
    """Tell the others why a fit ends, and whose, in a sentence that holds nothing private; then close."""
    reason = None
    try:
        yield
    except PartyError as problem:
        reason = str(problem)
        raise
    except BudgetError:
        reason = "its ledger does not allow this fit"
        raise
    except BaseException:  # what it says may be about its own files
        reason = "it stopped, and its operator sees why"
        raise
    finally:
        for channel in channels:
            if reason is not None:
                with suppress(PartyError):  # who has gone hears nothing
                    send(channel, wire.Refusal(reason[:500], name), "")
            with suppress(OSError):
                channel.close()


def trust_of(certificate: Certificate) -> str:
    """Who trusted whom for what, in one sentence: for people."""
    parties = parties_of(certificate.parties)
    if parties is None:
        return "One party alone: nobody else saw anything before the release."
    n, t = len(parties.who), parties.colluders
    if parties.noise == "coordinator":
        return (
            f"{n} parties trusted the coordinator with exact totals and with the noise on them; no party's "
            "own sums were seen by anybody."
        )
    return (
        f"Nobody had to be trusted with sums: the noise of any {n - t} of the {n} parties suffices, against "
        f"the coordinator together with the other {t}."
    )
