"""Signing a release: who stands behind it, checkable with any tool that reads DSSE envelopes.

The envelope (https://github.com/secure-systems-lab/dsse) holds an in-toto statement that names the SHA-256
of every file of the folder, signed with Ed25519. The key is made and kept by the sender.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pairveil.errors import InputError
from pairveil.foreign import parse_json
from pairveil.release.folder import ARTEFACT_FILES, METRIC_FILE, SIGNATURE_FILE, SIGNED_FILES

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:pairveil:release:1"
_MOST_BYTES = 1 << 20  # of a signature or key file; ours have a few hundred


def new_key(path: str | Path) -> Path:
    """Make a key pair: the private key at ``path``, for its owner alone, the public one at ``path``.pub.

    The files are PEM, as ``openssl genpkey -algorithm ed25519`` makes them.

    Returns the public key's file, to be given to those who receive releases.
    """
    private, public = Path(path), Path(f"{path}.pub")
    for file in (private, public):
        if file.exists():
            raise InputError(f"{file} exists; name another file for the new key")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    open_ = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _write_whole(private, secret, 0o600)
    _write_whole(public, open_, 0o644)
    return public


def sign(folder: str | Path, key: str | Path) -> Path:
    """Sign every file of a release; an earlier signature is replaced.

    Returns the envelope's file, ``signature.dsse.json`` in the folder.
    """
    source, owner = Path(folder), _private_key(Path(key))
    files = sorted(name for name in _files(source) if name != SIGNATURE_FILE)
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": _sha256(source / name)}} for name in files],
        "predicateType": PREDICATE,
        "predicate": {},
    }
    payload = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [
            {
                "keyid": key_id(owner.public_key()),
                "sig": base64.b64encode(owner.sign(_encoded(PAYLOAD_TYPE, payload))).decode(),
            }
        ],
    }
    target = source / SIGNATURE_FILE
    _write_whole(target, (json.dumps(envelope, indent=2) + "\n").encode(), 0o644)
    return target


def check_signature(folder: str | Path, signer: str | Path) -> tuple[str, ...]:
    """Check that the holder of the key ``signer`` signed this release as it is.

    Returns other files in the folder, which the signature does not cover.

    Raises InputError: not signed; signed by another key; or changed after it was signed.
    """
    source, key = Path(folder), _public_key(Path(signer))
    if not is_signed(source):
        raise InputError(
            f"{source} is not signed: it holds no {SIGNATURE_FILE}; ask the sender to sign it "
            "(pairveil sign)"
        )
    payload = _signed_payload(source / SIGNATURE_FILE, key, signer)
    digests = _subjects(payload, source)
    present = _files(source) - {SIGNATURE_FILE}
    for name in sorted(digests):
        if name not in present or _sha256(source / name) != digests[name]:
            raise InputError(
                f"{source} was tampered with: {_shown(name)} is not the file that was signed; "
                "ask the sender for the folder again"
            )
    foreign = present - set(digests)
    # A link or a folder by such a name is none of the signed files either, and is read as one.
    unsigned = SIGNED_FILES - set(digests)
    added = sorted(name for name in unsigned if os.path.lexists(source / name))
    if added or not set(ARTEFACT_FILES) & set(digests):
        name = added[0] if added else METRIC_FILE
        raise InputError(
            f"{source} was tampered with: {name} is not among the files that were signed"
        )
    return tuple(_shown(name) for name in sorted(foreign))


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


def _signed_payload(file: Path, key: Ed25519PublicKey, signer: str | Path) -> bytes:
    """The payload of an envelope, if one of its signatures is by this key."""
    try:
        envelope = parse_json(_small(file), str(file))
        kind = envelope["payloadType"]
        payload = base64.b64decode(envelope["payload"], validate=True)
        signatures = [base64.b64decode(one["sig"], validate=True) for one in envelope["signatures"]]
        signed = _encoded(kind, payload)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{file} is no DSSE envelope: it is damaged") from None
    for signature in signatures[:64]:
        try:
            key.verify(signature, signed)
        except InvalidSignature:
            continue
        if kind == PAYLOAD_TYPE:
            return payload
    raise InputError(
        f"{file.parent} is wrongly signed: the signature is not by the holder of the key {signer}"
    )


def _subjects(payload: bytes, source: Path) -> dict[str, str]:
    """Names and digests of the signed files."""
    try:
        statement = parse_json(payload, str(source))
        if statement["_type"] != STATEMENT or statement["predicateType"] != PREDICATE:
            raise ValueError
        return {str(one["name"]): str(one["digest"]["sha256"]) for one in statement["subject"]}
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{source} is signed, but as something else than a release") from None


def _files(folder: Path) -> set[str]:
    """Names of the plain files below a folder."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder of a release")
    return {
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink()
    }


def _sha256(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _small(file: Path) -> bytes:
    if not file.is_file():
        raise InputError(f"{file} is missing or no plain file")
    if file.stat().st_size > _MOST_BYTES:
        raise InputError(f"{file} is far too large for what it should hold")
    try:
        return file.read_bytes()
    except OSError:
        raise InputError(f"{file} cannot be read") from None


def _private_key(file: Path) -> Ed25519PrivateKey:
    advice = "make one with `pairveil sign --new-key FILE`"
    try:
        key: Any = serialization.load_pem_private_key(_small(file), password=None)
    except TypeError:
        raise InputError(f"{file} is protected by a passphrase; use a key without one") from None
    except (ValueError, UnsupportedAlgorithm):
        raise InputError(f"{file} holds no private key in PEM; {advice}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{file} holds another kind of key than Ed25519; {advice}")
    return key


def _public_key(file: Path) -> Ed25519PublicKey:
    try:
        key: Any = serialization.load_pem_public_key(_small(file))
    except (ValueError, UnsupportedAlgorithm):
        raise InputError(
            f"{file} holds no public key in PEM; it is the sender's KEY.pub that is needed"
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{file} holds another kind of key than Ed25519")
    return key


def _shown(name: str) -> str:
    """A stranger's file name, fit for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in name)[:80]


def _write_whole(target: Path, content: bytes, mode: int) -> None:
    """Write a file whole or not at all; nobody else can read it before its mode is set."""
    try:
        handle, draft = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    except OSError:
        raise InputError(f"{target} cannot be written: its folder is missing or closed") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, mode)
        os.replace(draft, target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
