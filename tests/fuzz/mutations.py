# ruff: noqa: E501
"""Ways in which files are damaged or forged: of bytes, and of JSON values."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

# A forger's escape sequence, a bidirectional override, a lone surrogate: none may reach a screen.
ESCAPE = "\x1b[2J\u202e\u2066"
OBEYED = "\x1b\u202e\u2066"  # what a terminal would obey in it
WORDS = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\n\n", b",", b";", b"\t", b'"', b"'", b"'=", b"=cmd|x",
    b"nan", b"-inf", b"1e999", b"-1", b"0", b"1", b"9" * 30, b"9" * 5000, b"1e-320", b"\xc3\x28", b"\xed\xa0\x80",
    b"{", b"}", b"[" * 50, b"]", b"null", b"true", b"#", b"\x1b[31m", b"\xe2\x80\xae", b"PAR1", b"PK\x03\x04", b" " * 300,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 5, 10**6, 2**53, 2**63, 10**400, 1e-300, 5e-324, 1e300, 0.5, -0.0, "", "x", "inf",
    "-inf", "nan", ESCAPE, "\ud800", "9" * 5000, [], {}, [1], ["x"], [[]], {"x": 1}, [None], {"": {}}, "DEEP", "WIDE",
)  # fmt: skip


def damaged(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """``content`` after one to four blows."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        at, end = sorted((rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)))
        near = min(at + rng.randrange(1, 12), len(content))
        kind = rng.randrange(9)
        if kind == 0:  # a bit
            content = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at]
        elif kind == 2:
            content = content[:at] + rng.choice(WORDS) + content[at:]
        elif kind == 3:
            content = content[:at] + rng.choice(WORDS) + content[near:]
        elif kind == 4:
            content = content[:at] + content[near:]
        elif kind == 5:
            content = content[:at] + content[at:end] * rng.randrange(2, 4) + content[end:]
        elif kind == 6:
            lines = content.split(b"\n")
            rng.shuffle(lines)
            content = b"\n".join(lines)
        elif kind == 7:
            other = rng.choice(others)
            content = content[:at] + other[rng.randrange(len(other) + 1) :]
        else:
            content = content[:at] + rng.randbytes(rng.randrange(1, 20)) + content[near:]
        content = content[:200_000]
    return content


def forged(data: Any, rng: random.Random) -> Any:
    """JSON data with one to three of its values replaced, dropped, doubled or added."""
    data = json.loads(json.dumps(data))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(data))
        if not places:
            break
        owner, key = rng.choice(places)
        kind = rng.randrange(8)
        if kind == 0:
            del owner[key]
        elif kind == 1 and isinstance(owner, dict):
            owner[rng.choice(("x", ESCAPE, "", "epsilon"))] = _value(rng)
        elif kind == 2 and isinstance(owner, list):
            again = json.dumps(owner[key])
            owner.extend(json.loads(again) for _ in range(rng.choice((1, 3, 300))))
        elif kind == 3 and isinstance(owner[key], str):
            owner[key] += ESCAPE
        elif kind == 4 and isinstance(owner[key], int | float) and not isinstance(owner[key], bool):
            owner[key] *= rng.choice((0, -1, 2, 0.5, 1e-9, 1e9, 10**30))
        else:
            owner[key] = _value(rng)
    return data


def _value(rng: random.Random) -> Any:
    """One of the values, as a copy: a later blow must not land in the list, nor a value in itself."""
    return copy.deepcopy(rng.choice(VALUES))


def as_text(data: Any) -> str:
    """JSON text of forged data, with what Python would not write."""
    deep = "[" * 200_000 + "]" * 200_000
    text = json.dumps(data)
    return text.replace('"DEEP"', deep).replace('"WIDE"', json.dumps(list(range(20_000))))


def _places(data: Any) -> Any:
    pairs = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in list(pairs):
        yield data, key
        yield from _places(value)
