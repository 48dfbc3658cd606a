"""Sums over the records of several parties: nobody sees another's, and the noise is drawn in shares.

Parties and coordinator run the same recipe on the same released answers, so each of them knows which sum is
next: nobody is asked for anything but what it has planned itself. For each answer a party sums its clipped
contributions to whole numbers, adds its share of the noise, and masks the result modulo 2^64 with words that
it shares with each other party, added by one of the two and taken off by the other. The coordinator adds the
masked sums; the masks cancel, and what is left is the noisy total. The proof is docs/theory/parties.md.

There is no repeat. Whoever leaves, is late or sends anything else ends the fit, and no total is formed of
fewer than all sums: without the masks of one of them it would be a uniformly distributed number anyway.

Messages are decoded strictly, and anything else ends the fit. One is a msgpack map with a tag, every size is
bounded before anything is built of it, and a channel carries them one by one, in order: a pair of queues, a
TLS connection.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn, Protocol, TypeVar

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import Meta, Struct
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.engine.backends.local import Backend, NoisyBackend, batch_of
from pairveil.engine.plan import Plan
from pairveil.engine.statistics import Statistic
from pairveil.errors import InputError, PartyError
from pairveil.printable import printable
from pairveil.privacy.grid import MAX_NOISE_IN_GRID, choose_grid
from pairveil.privacy.mechanisms import Query
from pairveil.privacy.noise import NoiseSource
from pairveil.records.kinds import PAIRS

# ---- what parties and a coordinator say to each other ----------------------------------------------

PROTOCOL = 3
"""Of these messages and of what is done with them; another one is refused."""

SMALL = 1 << 20
"""Bytes of a message that holds no numbers of a sum, at most."""

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}\Z")]
Count = Annotated[int, Meta(ge=1, le=2**53)]
Round = Annotated[int, Meta(ge=0, le=2**40)]
Key = Annotated[bytes, Meta(min_length=32, max_length=32)]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Kappas = Annotated[dict[Annotated[str, Meta(max_length=12)], Count], Meta(max_length=3)]
Rule = Literal["union", "sum", "disjoint"]
NoiseBy = Literal["parties", "coordinator"]
Scalar = bool | int | float | str | None


class Message(Struct, forbid_unknown_fields=True, tag=str.lower, tag_field="kind"):
    """Anything that is sent."""


class Refusal(Message):
    """The fit ends here, and why; sent by whoever cannot go on."""

    reason: Annotated[str, Meta(max_length=500)]
    name: Name | None = None  # of the party that says so


class Terms(Message):
    """What the coordinator proposes: the learner with its options, and how parties are counted together."""

    protocol: int
    version: Annotated[str, Meta(max_length=40)]
    session: Key
    learner: Annotated[str, Meta(max_length=60)]
    options: Annotated[dict[str, Scalar], Meta(max_length=60)]
    n_parties: Annotated[int, Meta(ge=2, le=1000)]
    kappa_rule: Rule
    noise: NoiseBy
    colluders: Annotated[int, Meta(ge=0, le=999)]
    schema: Digest | None  # of the TOML that brings columns to scale
    rehearsal: bool


class Joining(Message):
    """What a party answers: its public key and its public numbers."""

    name: Name
    key: Key
    columns: Annotated[list[Annotated[str, Meta(max_length=500)]], Meta(max_length=100_000)] | None
    n_features: Count
    n_pairs_given: Count
    n_pairs_used: Count
    kappas_given: Kappas
    kappas_used: Kappas
    graph: Digest
    same_key: bytes = b""  # union: equal where the keys of the hash are
    edges: bytes = b""  # union: 32 bytes a given pair, keyed hashes of both ids
    used: bytes = b""  # union: a bit a given pair


class Member(Struct, forbid_unknown_fields=True):
    """A party as all others know it."""

    name: Name
    key: Key
    n_pairs_given: Count
    n_pairs_used: Count
    kappas: Kappas
    graph: Digest


class Roster(Message):
    """Everybody who takes part, what follows for kappa, and the certificate that this gives."""

    who: Annotated[list[Member], Meta(min_length=2, max_length=1000)]
    kappas_given: Kappas
    kappas_used: Kappas
    promise: Digest  # of the planned certificate, its versions left out


class Ready(Message):
    """A party comes to the same certificate, and its ledger would allow it."""

    promise: Digest


class Begin(Message):
    """Everybody is ready: now each party charges, and sums."""


class Question(Message):
    """Which answer is asked for now; every party knows what it must be and checks it."""

    round: Round
    name: Annotated[str, Meta(max_length=100)]
    entries: Count
    exponent: Annotated[int, Meta(ge=-1074, le=1023)]  # the grid is two to it
    scale: Annotated[float, Meta(ge=0)]


class Share(Message):
    """A party's masked sum: 64-bit words, little-endian."""

    round: Round
    words: bytes


class Total(Message):
    """The noisy sum of all parties: floats, little-endian."""

    round: Round
    numbers: bytes


class Finished(Message):
    """What was learned, and its certificate, as the coordinator writes them down."""

    components: bytes
    n_components: Count
    certificate: Annotated[str, Meta(max_length=SMALL)]


Any_ = Refusal | Terms | Joining | Roster | Ready | Begin | Question | Share | Total | Finished
_DECODER: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Any_)
Kind = TypeVar("Kind", bound=Message)


TOO_LONG = "sent a longer message than its turn allows"
"""What a channel's EOFError says where there was a message, and it was not read."""


class Channel(Protocol):
    """Carries messages between a party and the coordinator, one by one and in order."""

    def send(self, message: bytes) -> None:
        """Hand a message over."""

    def receive(self, most: int) -> bytes:
        """The next message, of at most so many bytes; TimeoutError, OSError or EOFError without one."""

    def close(self) -> None:
        """Nothing more will be sent."""


def as_sent(message: Message) -> bytes:
    """A message as it is sent."""
    return msgspec.msgpack.encode(message)


def send(channel: Channel, message: Message, who: str) -> None:
    """Send one message to ``who``."""
    try:
        channel.send(as_sent(message))
    except (OSError, EOFError):
        raise PartyError(f"{who} went away") from None


def receive(channel: Channel, wanted: type[Kind], who: str, most: int = SMALL) -> Kind:
    """The next message of ``who``, which must be of this kind; a refusal is raised as what it says."""
    try:
        raw = channel.receive(max(most, SMALL))
    except TimeoutError:
        raise PartyError(f"{who} sent nothing in time") from None
    except (OSError, EOFError) as problem:
        said = TOO_LONG if str(problem) == TOO_LONG else "went away"
        raise PartyError(f"{who} {said}") from None
    try:
        found = _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise PartyError(f"{who} sent what is no message of this protocol") from None
    if isinstance(found, Refusal):
        told = who if found.name is None else f"party '{found.name}'"
        raise PartyError(f"{told} ended the fit: {printable(found.reason)}")
    if not isinstance(found, wanted):
        raise PartyError(f"{who} sent another message than its turn asks for")
    return found


# ---- masks, and sums under them --------------------------------------------------------------------

Words = NDArray[np.uint64]

MARGIN = 1e-6
"""Noise of a release is larger by so much than its plan asks for: parties whose machines round otherwise come
to a scale that is a little off, and must find the stated one large enough for their own sums."""

TAILS = 40.0
"""Deviations of noise that are kept free in 64 bits: beyond them there is a chance of exp(-800)."""


def check_room(plan: Plan, n_parties: int, shares: int) -> None:
    """Refuse, while nothing is charged, what 64 bits cannot hold: all sums and the tails of all noise.

    Each of ``n_parties`` adds a share of the noise, and ``shares`` of them are as much as the plan asks for.
    """
    clip = math.nextafter(2.0, 0.0)  # just below a power of two the grid is finest for its size
    for query in plan.queries:
        norm, entries = query.mechanism.norm, query.n_entries
        grid = choose_grid(clip, entries, norm=norm, n_pairs=plan.n_records)
        sums = plan.n_records * clip / grid
        deviation = 1.01 * min(query.noise_multiplier * clip / grid, MAX_NOISE_IN_GRID)
        if sums + TAILS * n_parties * deviation / math.sqrt(shares) >= 2.0**63:
            raise InputError(
                "so many parties, pairs or so much noise do not fit into exact 64-bit sums: let fewer "
                "parties take part, state fewer colluders, or choose a larger epsilon"
            )


class Masks:
    """What a party adds to its sums, so that only the total of all parties tells anything.

    ``key`` was made for this fit alone; ``roster`` has the public keys of all parties, this one's under its
    ``name``. Masks follow from ``session``, which is what was agreed on, from the roster, and from all that
    was `heard` since. So parties that were told different things have masks that do not cancel, and their
    sums stay hidden.
    """

    def __init__(
        self, key: X25519PrivateKey, roster: Mapping[str, bytes], name: str, session: bytes
    ) -> None:
        own = key.public_key().public_bytes_raw()
        if roster.get(name) != own or len(set(roster.values())) < len(roster):
            raise PartyError("the coordinator lists other keys than the parties sent")
        salt, self._secrets = salt_of(roster, session), list[tuple[bytes, bool]]()
        for other, public in sorted(roster.items()):
            if other == name:
                continue
            try:
                shared = key.exchange(X25519PublicKey.from_public_bytes(public))
            except ValueError:
                raise PartyError(f"party '{other}' sent a key that is none") from None
            about = b"pairveil parties masks 1" + min(own, public) + max(own, public)
            secret = HKDF(SHA256(), 32, salt, about).derive(shared)
            self._secrets.append((secret, own < public))
        self._next, self._heard = 0, hashlib.sha256()

    def heard(self, message: Message) -> None:
        """What the coordinator tells everybody alike."""
        self._heard.update(as_sent(message))

    def mask(self, number: int, size: int) -> Words:
        """The words of answer ``number``; each is asked for once, in order."""
        if number != self._next:
            raise RuntimeError(
                "a mask is used once: two sums under one would show their difference"
            )
        self._next += 1
        total, heard = np.zeros(size, dtype=np.uint64), self._heard.digest()
        for secret, added in self._secrets:
            key = hmac.digest(secret, heard, "sha256")
            # 32 bits of counter, which starts at 0, and 96 of nonce.
            nonce = bytes(4) + number.to_bytes(12, "little")
            stream = Cipher(algorithms.ChaCha20(key, nonce), mode=None).encryptor()
            words = np.frombuffer(stream.update(bytes(8 * size)), dtype="<u8").astype(np.uint64)
            total = total + words if added else total - words
        return total

    def __reduce__(self) -> NoReturn:
        raise TypeError("masks cannot be copied or pickled: each is used once")


def salt_of(roster: Mapping[str, bytes], session: bytes) -> bytes:
    """A name for one fit of these parties with these keys, in which all masks are salted."""
    digest = hashlib.sha256(session)
    for name, key in sorted(roster.items()):
        digest.update(len(name).to_bytes(4, "little") + name.encode() + key)
    return digest.digest()


@dataclass(frozen=True)
class JointRecords:
    """What is public of the records of several parties, in place of records; none are here."""

    n_records: int  # of all parties together
    n_features: int  # of each of them
    feature_names: tuple[str, ...] | None
    graph: str  # names who is paired with whom at all parties, by which ledgers know the same pairs again
    backend: NoisyBackend | None = None  # where they are summed
    kind: str = PAIRS.name


class Gathering(NoisyBackend):
    """The coordinator's side: adds masked sums up, and tells everybody the noisy total.

    ``in_shares``: the parties draw the noise; else it is drawn here, by whoever then sees totals without
    noise.
    """

    kind = PAIRS.name

    def __init__(self, channels: Mapping[str, Channel], n_records: int, *, in_shares: bool) -> None:
        self.n_records = n_records
        self._channels, self._in_shares, self._round = dict(channels), in_shares, 0

    def noisy_sum(
        self,
        query: Query,
        statistic: Statistic,
        step: int,
        grid: float,
        scale: float,
        noise: NoiseSource,
    ) -> FloatArray:
        """Ask every party for its masked sum; add them; tell the total."""
        del step
        size = math.prod(statistic.shape)
        stated = scale * (1 + MARGIN) if noise.for_release else scale
        asked = Question(self._round, query.name, size, _exponent(grid), stated)
        for name, channel in self._channels.items():
            send(channel, asked, _party(name))
        total = np.zeros(size, dtype=np.uint64)
        for name, channel in self._channels.items():
            total += self._share(name, channel, size)
        whole = total.view(np.int64).reshape(statistic.shape)
        if self._in_shares:
            noisy = whole.astype(np.float64) * grid
        else:
            noisy = query.mechanism.draw(noise, whole, stated, grid)
        told = Total(self._round, noisy.astype("<f8").tobytes())
        for name, channel in self._channels.items():
            send(channel, told, _party(name))
        self._round += 1
        return noisy

    def _share(self, name: str, channel: Channel, size: int) -> Words:
        share = receive(channel, Share, _party(name), 8 * size + 100)
        if share.round != self._round or len(share.words) != 8 * size:
            raise PartyError(f"{_party(name)} sent a sum for another answer than was asked for")
        return np.frombuffer(share.words, dtype="<u8").astype(np.uint64)


class OneOfSeveral(NoisyBackend):
    """A party's side: sums its own records, adds its share of the noise, masks, and learns the total.

    ``own`` is where this party's records are, ``n_records`` counts those of all parties. So many ``shares``
    are as much noise as the plan asks for; None: the coordinator draws it.
    """

    def __init__(
        self, channel: Channel, own: Backend, masks: Masks, n_records: int, shares: int | None
    ) -> None:
        self.n_records, self.kind = n_records, own.kind
        self._channel, self._own, self._masks, self._shares = channel, own, masks, shares
        self._round = 0

    def noisy_sum(
        self,
        query: Query,
        statistic: Statistic,
        step: int,
        grid: float,
        scale: float,
        noise: NoiseSource,
    ) -> FloatArray:
        """Take part in one answer; a question that this party would not ask itself ends the fit."""
        size = math.prod(statistic.shape)
        asked = receive(self._channel, Question, COORDINATOR)
        mine = (self._round, query.name, size, _exponent(grid))
        if (asked.round, asked.name, asked.entries, asked.exponent) != mine:
            raise PartyError("the coordinator asks for another sum than the plan of this party")
        if not scale <= asked.scale <= scale * (1 + 10 * MARGIN):
            raise PartyError("the coordinator states other noise than this party's sums need")
        self._masks.heard(asked)
        rows = batch_of(query, step, self._own.n_records, noise)
        norm, apart = query.mechanism.norm, query.is_sampled
        total = self._own.add_up(rows, statistic, norm, grid, separately=apart)
        words = total.ravel().view(np.uint64)
        if self._shares is not None:
            words = words + _noise_share(query, size, asked.scale, self._shares, grid, noise)
        masked = words + self._masks.mask(self._round, size)
        send(self._channel, Share(self._round, masked.astype("<u8").tobytes()), COORDINATOR)
        told = receive(self._channel, Total, COORDINATOR, 8 * size + 100)
        if told.round != self._round or len(told.numbers) != 8 * size:
            raise PartyError("the coordinator told the total of another answer")
        self._masks.heard(told)
        self._round += 1
        noisy = np.frombuffer(told.numbers, dtype="<f8").astype(np.float64)
        if not np.isfinite(noisy).all():
            raise PartyError("the coordinator told a total that is no number")
        return noisy.reshape(statistic.shape)


def _noise_share(
    query: Query, size: int, scale: float, shares: int, grid: float, noise: NoiseSource
) -> Words:
    """Whole numbers with a ``shares``-th of the variance; so many of them are as much noise as is needed."""
    part = (
        scale / math.sqrt(shares) * (1 + 4 * sys.float_info.epsilon)
    )  # not below, whatever rounding does
    drawn = query.mechanism.draw(noise, np.zeros(size, dtype=np.int64), part, grid) / grid
    return drawn.astype(np.int64).view(np.uint64)


COORDINATOR = "the coordinator"


def _party(name: str) -> str:
    return f"party '{name}'"


def _exponent(grid: float) -> int:
    return math.frexp(grid)[1] - 1
