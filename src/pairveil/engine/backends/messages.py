"""What parties and a coordinator say to each other, strictly decoded: anything else ends the fit.

A message is one msgpack map with a tag. Every size is bounded before anything is built of it. A channel
carries messages one by one, in order: a pair of queues, a TLS connection.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta, Struct

from pairveil.errors import PartyError
from pairveil.printable import printable

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


def packed(message: Message) -> bytes:
    """A message as it is sent."""
    return msgspec.msgpack.encode(message)


def send(channel: Channel, message: Message, who: str) -> None:
    """Send one message to ``who``."""
    try:
        channel.send(packed(message))
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
