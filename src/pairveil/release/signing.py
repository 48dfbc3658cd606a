"""Signing a release: who stands behind it, checkable with any tool that reads DSSE envelopes.

The envelope (https://github.com/secure-systems-lab/dsse) holds an in-toto statement that names the SHA-256
of every file of the folder, the certificate's among them, and the time of signing, signed with Ed25519. The
key is made and kept by the sender.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pairveil.errors import InputError
from pairveil.files import draft_of, file_draft, write_file
from pairveil.foreign import parse_json, read_regular
from pairveil.release.release import (
    ARTEFACT_FILES,
    CERTIFICATE_FILE,
    METRIC_FILE,
    SIGNATURE_FILE,
    SIGNED_FILES,
    load_release,
)

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:pairveil:release:2"
UNDATED = "urn:pairveil:release:1"  # without the certificate's digest and the time of signing
_MOST_BYTES = 1 << 20  # of a signature or key file; ours have a few hundred


class Signature(NamedTuple):
    """What a signature that holds says: when it was made, and which files of the folder it does not cover."""

    signed_at: str | None
    uncovered: tuple[str, ...]


def new_key(path: str | Path) -> Path:
    """Make a key pair: the private key at ``path``, for its owner alone, the public one at ``path``.pub.

    The files are PEM, as ``openssl genpkey -algorithm ed25519`` makes them. A private key that is there
    without its public one gets it; nothing is ever written over.

    Returns the public key's file, to be given to those who receive releases.
    """
    private, public = Path(path), Path(f"{path}.pub")
    # Whoever holds the draft of the public key makes both: two runs at once never mix their keys.
    with file_draft(public, new=True) as draft:
        if public.exists():
            raise InputError(f"{public} exists; name another file for the new key")
        if not private.exists():
            key = Ed25519PrivateKey.generate()
            secret = key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            write_file(private, secret, mode=0o600, new=True)
        draft.write_bytes(
            _private_key(private)
            .public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
    return public


def sign(folder: str | Path, key: str | Path) -> Path:
    """Sign every file of a release whose certificate holds; an earlier signature is replaced.

    The statement names each file's SHA-256, the certificate's and the time of signing. Of a release of
    several parties each signs the statement of the first, if it is of these files, beside the others.

    Returns the envelope's file, ``signature.dsse.json`` in the folder.
    """
    source, owner = Path(folder), _private_key(Path(key))
    digests = _digests(source)
    found = load_release(source).certificate
    if found is None or not found.verify():
        raise InputError(
            f"{folder} has no certificate that holds: there is nothing to stand behind"
        )
    if _digests(source) != digests:  # then what was verified is not what would be signed
        raise InputError(f"{folder} was changed while it was being signed; sign it again")
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digests[name]}} for name in digests],
        "predicateType": PREDICATE,
        "predicate": {
            "certificate_sha256": digests[CERTIFICATE_FILE],
            "signed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    }
    payload = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
    own, others = key_id(owner.public_key()), list[dict[str, str]]()
    if found.parties is not None and is_signed(source):
        kind, held, signatures = _envelope(source / SIGNATURE_FILE)
        if kind == PAYLOAD_TYPE and _stated(held, source)[0] == digests:
            payload, others = held, [one for one in signatures if one.get("keyid") != own]
    signature = base64.b64encode(owner.sign(_encoded(PAYLOAD_TYPE, payload))).decode()
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [*others, {"keyid": own, "sig": signature}],
    }
    return write_file(source / SIGNATURE_FILE, json.dumps(envelope, indent=2) + "\n")


def check_signature(folder: str | Path, signer: str | Path | None) -> Signature:
    """Check that the holder of the key ``signer`` signed this release as it is.

    Without a key, only that its files are those which somebody signed. It does not say that there is no
    newer release of the same sender: look at `Signature.signed_at`.

    Raises InputError: not signed; signed by another key; or changed after it was signed.
    """
    source, key = Path(folder), None if signer is None else _public_key(Path(signer))
    if not is_signed(source):
        raise InputError(
            f"{source} is not signed: it holds no {SIGNATURE_FILE}; ask the sender to sign it "
            "(pairveil sign)"
        )
    payload = _signed_payload(source / SIGNATURE_FILE, key, signer)
    digests, signed_at = _stated(payload, source)
    present = _files(source) - {SIGNATURE_FILE}
    for name in sorted(digests):
        if name not in present or _sha256(source / name) != digests[name]:
            raise InputError(
                f"{source} was tampered with: {_shown(name)} is not the file that was signed; "
                "ask the sender for the folder again"
            )
    foreign = _entries(source) - set(digests) - {SIGNATURE_FILE}
    # A link or a folder by such a name is none of the signed files either, and is read as one.
    unsigned = SIGNED_FILES - set(digests)
    added = sorted(name for name in unsigned if os.path.lexists(source / name))
    if added or not set(ARTEFACT_FILES) & set(digests):
        name = added[0] if added else METRIC_FILE
        raise InputError(
            f"{source} was tampered with: {name} is not among the files that were signed"
        )
    return Signature(signed_at, tuple(_shown(name) for name in sorted(foreign)))


def is_signed(folder: str | Path) -> bool:
    """Whether the folder holds a signature, valid or not."""
    return (Path(folder) / SIGNATURE_FILE).is_file()


def key_id(key: Ed25519PublicKey) -> str:
    """SHA-256 of a public key (its SubjectPublicKeyInfo), to tell keys apart."""
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(der).hexdigest()


def _encoded(kind: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is really signed."""
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def _signed_payload(file: Path, key: Ed25519PublicKey | None, signer: str | Path | None) -> bytes:
    """The payload of an envelope, if one of its signatures is by this key; by anybody, without a key."""
    kind, payload, signatures = _envelope(file)
    for one in signatures[:64]:
        try:
            if key is not None:
                key.verify(base64.b64decode(one["sig"]), _encoded(kind, payload))
        except InvalidSignature:
            continue
        if kind == PAYLOAD_TYPE:
            return payload
    raise InputError(
        f"{file.parent} is wrongly signed: the signature is not by the holder of the key {signer}"
    )


def _envelope(file: Path) -> tuple[str, bytes, list[dict[str, str]]]:
    """What an envelope holds: the kind of its payload, the payload, and its signatures."""
    held = read_regular(file, _MOST_BYTES)
    try:
        envelope = parse_json(held, str(file))
        kind, signatures = envelope["payloadType"], list(envelope["signatures"])
        payload = base64.b64decode(envelope["payload"], validate=True)
        _encoded(kind, b"".join(base64.b64decode(one["sig"], validate=True) for one in signatures))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{file} is no DSSE envelope: it is damaged") from None
    return kind, payload, signatures


def _stated(payload: bytes, source: Path) -> tuple[dict[str, str], str | None]:
    """Names and digests of the signed files, and when they were signed, in UTC."""
    try:
        statement = parse_json(payload, str(source))
        kind, said, subject = (statement[key] for key in ("predicateType", "predicate", "subject"))
        digests = {str(one["name"]): str(one["digest"]["sha256"]) for one in subject}
        if statement["_type"] != STATEMENT or len(digests) != len(subject):
            raise ValueError
        if kind == UNDATED:
            return digests, None
        if kind != PREDICATE or said["certificate_sha256"] != digests[CERTIFICATE_FILE]:
            raise ValueError
        signed_at = datetime.fromisoformat(said["signed_at"]).astimezone(UTC)
        return digests, signed_at.isoformat(timespec="seconds")
    except (ValueError, KeyError, TypeError, OverflowError):
        raise InputError(f"{source} is signed, but as something else than a release") from None


def _digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file to be signed: not the signature itself, and no draft of ours."""
    names = {
        name for name in _files(folder) - {SIGNATURE_FILE} if draft_of(Path(name).name) is None
    }
    return {name: _sha256(folder / name) for name in sorted(names)}


def _files(folder: Path) -> set[str]:
    """Names of the plain files below a folder."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder of a release")
    return {
        name
        for name in _entries(folder)
        if (folder / name).is_file() and not (folder / name).is_symlink()
    }


def _entries(folder: Path) -> set[str]:
    """Names of all that stands below a folder and can be read: files, links to files and folders, pipes."""
    return {
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.is_symlink() or not file.is_dir()
    }


def _sha256(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _private_key(file: Path) -> Ed25519PrivateKey:
    advice = "; make one with `pairveil sign --new-key FILE`"
    none = f"{file} holds no private key in PEM{advice}"
    load = partial(serialization.load_pem_private_key, password=None)
    key: Ed25519PrivateKey = _key(file, load, Ed25519PrivateKey, none, advice)
    if os.name == "posix":
        found = file.stat()
        if found.st_uid == os.getuid() and found.st_mode & 0o077:  # as ssh does
            raise InputError(
                f"{file} is open to others (mode {stat.S_IMODE(found.st_mode):03o}), and whoever has it "
                f"signs in your name: `chmod 600 {file}`, or take a new key if somebody may have read it"
            )
    return key


def _public_key(file: Path) -> Ed25519PublicKey:
    none = f"{file} holds no public key in PEM; it is the sender's KEY.pub that is needed"
    return _key(file, serialization.load_pem_public_key, Ed25519PublicKey, none)  # type: ignore[no-any-return]


def _key(file: Path, load: Any, kind: type, none: str, advice: str = "") -> Any:
    held = read_regular(file, _MOST_BYTES)
    try:
        key = load(held)
    except TypeError:
        raise InputError(f"{file} is protected by a passphrase; use a key without one") from None
    except (ValueError, UnsupportedAlgorithm):
        raise InputError(none) from None
    if not isinstance(key, kind):
        raise InputError(f"{file} holds another kind of key than Ed25519{advice}")
    return key


def _shown(name: str) -> str:
    """A stranger's file name, fit for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in name)[:80]
