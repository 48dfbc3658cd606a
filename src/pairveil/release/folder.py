"""The folder of a release: names of its files, which folders one may be written into, and its certificate.

Each kind of release writes and reads its own folder: ``save`` and ``load`` of `metric`, `linkage`,
`error_curve` and `answers`; networks are written by `pairveil.deep`.
"""

from __future__ import annotations

import filecmp
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from pairveil.drafts import draft_of
from pairveil.errors import InputError
from pairveil.files import FolderDraft, recover
from pairveil.foreign import parse_json, read_regular
from pairveil.privacy.certificate import Certificate

METRIC_FILE = "metric.safetensors"
LINKAGE_FILE = "linkage.json"
CURVE_FILE = "error_curve.json"
RANKING_FILE = "ranking.json"
CLUSTERS_FILE = "clusters.json"
NETWORK_FILE = "network.safetensors"
ARTEFACT_FILES = (METRIC_FILE, LINKAGE_FILE, CURVE_FILE, RANKING_FILE, CLUSTERS_FILE, NETWORK_FILE)
"""What a certificate is about; each kind of release has one of them."""
SPLINK_FILE = "splink.json"
NETWORK_ABOUT, NETWORK_ONNX = "network.json", "network.onnx"
CERTIFICATE_FILE = "certificate.json"
README_FILE = "README.md"
SUMMARY_FILE = "summary.json"
SIGNATURE_FILE = "signature.dsse.json"
SCHEMA_FILE = "schema.toml"
REPORT_FILE = "report.html"
SIGNED_FILES = {
    *ARTEFACT_FILES,
    SPLINK_FILE,
    NETWORK_ABOUT,
    NETWORK_ONNX,
    CERTIFICATE_FILE,
    README_FILE,
    SUMMARY_FILE,
    SCHEMA_FILE,
}
"""Files that pairveil reads as parts of a release: a signature must cover those that are there."""


JSON_VERSION = 1
"""Of every release that is a JSON file."""


def check_folder(target: Path, overwrite: bool) -> None:
    """Refuse a folder that a release must not go into (before anything is spent on it)."""
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file; name a folder for the release")
    held = {entry.name for entry in target.iterdir()} if target.exists() else set()
    ours = SIGNED_FILES | {SIGNATURE_FILE, REPORT_FILE}
    held = {name for name in held if draft_of(name) not in ours}  # which a kill left
    if not held:
        return
    if held - ours:
        raise InputError(f"{target} holds other files; name a new folder for the release")
    if not overwrite:
        raise InputError(
            f"{target} already holds a release; name another folder or allow overwriting"
        )


def check_unsigned(folder: Path, file: Path) -> None:
    """Refuse to write a file into a signed release, which would no longer be what was signed."""
    signature = folder / SIGNATURE_FILE
    if signature.exists() and file.resolve().is_relative_to(folder.resolve()):
        raise InputError(
            f"{folder} is signed, and its signature does not hold for a page that is written into it now. "
            f"Write the page elsewhere (--out FILE); or remove {signature}, write the page and sign again"
        )


def reserve(folder: str | Path, overwrite: bool, room: int) -> FolderDraft:
    """Make sure of a release's folder, and of so many bytes for it, before anything is spent on it."""
    recover(folder)
    check_folder(Path(folder), overwrite)
    return FolderDraft(folder, room=room)


def commit(draft: FolderDraft, overwrite: bool) -> Path:
    """Give a written release its name, unless somebody has used the name meanwhile.

    A run that was killed after this, with its checkpoint still there, finds the same release under the name
    when it is run again: that one may always be replaced.
    """
    places = [(draft.folder / name, draft.target / name) for name in ARTEFACT_FILES]
    there = [pair for pair in places if all(file.is_file() for file in pair)]
    same = any(filecmp.cmp(*pair, shallow=False) for pair in there)
    check_folder(draft.target, overwrite or same)
    return draft.commit()


def certified(certificate: Certificate | None, artefact: bytes) -> Certificate | None:
    """The certificate as it goes into the folder: with the SHA-256 of what it is about."""
    if certificate is None:
        return None
    return replace(certificate, metric_sha256=hashlib.sha256(artefact).hexdigest())


def read_certificate(folder: Path, file: Path, artefact: bytes) -> Certificate | None:
    """The folder's certificate, checked to be that of ``artefact``, the content of ``file``."""
    if not (folder / CERTIFICATE_FILE).exists():
        return None
    text = read_regular(folder / CERTIFICATE_FILE).decode("utf-8", errors="replace")
    certificate = Certificate.from_json(text)
    if certificate.metric_sha256 != hashlib.sha256(artefact).hexdigest():
        raise InputError(
            f"do not use this release: {file} is not what {CERTIFICATE_FILE} certifies (its SHA-256 "
            "differs). It was changed after the release; ask the sender for the folder again"
        )
    return certificate


def read_stated(
    folder: str | Path, name: str, format_: str, what: str
) -> tuple[dict[str, Any], Certificate | None]:
    """A release that is one JSON file: its content, of this format, and its certificate."""
    file = Path(folder) / name
    if not file.exists():
        raise InputError(f"{folder} holds no {what}: {name} is missing")
    text = read_regular(file)
    certificate = read_certificate(file.parent, file, text)
    content = parse_json(text, str(file))
    if not isinstance(content, dict) or content.get("format") != format_:
        raise InputError(f"{file} is no pairveil {what}")
    if content.get("version") != JSON_VERSION:
        raise InputError(f"{file} was written by another version of pairveil; update pairveil")
    return content, certificate
