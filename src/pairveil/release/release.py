"""A release: one folder with what was learned, its certificate and a README, written whole or not at all.

What was learned is one file, the *artefact*: a metric, a network, tables of a linkage model, an error curve,
a ranking, clusters. The certificate states the SHA-256 of the artefact. Each kind of artefact is a subclass
of `Release` that says what its file holds.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from pairveil.errors import InputError
from pairveil.files import FolderDraft, draft_of, recover
from pairveil.foreign import MAX_BYTES, parse_json, read_regular
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

ROOM = 4 << 20
"""Bytes kept free for a release that is not known yet: artefact, certificate, README and report."""


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


def check_private(file: Path) -> None:
    """Refuse to write a private file beside what is handed out."""
    if any((file.parent / name).exists() for name in ARTEFACT_FILES):
        raise InputError(f"{file} is private, and {file.parent} is a release: name another folder")


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


class About(NamedTuple):
    """What a release's README says of its own kind, for the one who receives it; in Markdown."""

    title: str  # what was released
    holds: str  # list items: the artefact
    use: str  # lines of Python
    besides: str = ""  # list items: files other than artefact, certificate and README
    sections: str = ""  # tables or lists


class Release:
    """What all releases have in common: `save`, `load` and what stands in the folder.

    A subclass is a frozen dataclass with a field ``certificate``. It says what its artefact is (`artefact`,
    `read`) and what the README tells of it (`about`).
    """

    file: ClassVar[str]
    what: ClassVar[str]
    """The artefact's file, and what people call it."""
    most: ClassVar[int | None] = MAX_BYTES
    """Bytes of an artefact that is read; None: any number."""
    formats: ClassVar[tuple[str, ...]] = ()
    """What it can be exported as."""

    # None where nothing was promised: | Any spares everybody else a check for it.
    certificate: Certificate | Any

    def artefact(self) -> bytes:
        """The content of `file`, which the certificate is about."""
        raise NotImplementedError

    @classmethod
    def read(cls, artefact: bytes, file: Path) -> Self:
        """From what `artefact` gave, without its certificate; InputError where it is something else."""
        raise NotImplementedError

    @classmethod
    def check_whole(cls, artefact: bytes, file: Path) -> None:
        """Refuse a file that was cut off, before its digest says no more than that it is another."""

    def about(self) -> About:
        """What the README tells of this kind of release."""
        raise NotImplementedError

    def further(self, digest: str) -> Mapping[str, bytes | str]:  # noqa: ARG002
        """Other files of the folder, by name; ``digest`` is the artefact's SHA-256."""
        return {}

    def verify(self) -> bool:
        """Whether there is a certificate, and every number of it that can be recomputed follows."""
        return self.certificate is not None and bool(self.certificate.verify())

    def export(self, to: str, path: str | Path) -> Path:
        """Write it in one of its `formats`, for those who do not use pairveil.

        Every export is made by `pairveil.release.exporters` and takes the rows that the release takes.

        Raises InputError: there is no such format of it, or the format cannot hold it.
        """
        if to not in self.formats:
            known = f"as {', '.join(self.formats)}" if self.formats else "in no other format"
            raise InputError(f"this {self.what} can be exported {known}")
        written: Path = getattr(import_module("pairveil.release.exporters"), f"to_{to}")(self, path)
        return written

    def save(
        self,
        folder: str | Path | FolderDraft,
        *,
        overwrite: bool = False,
        summary: str | None = None,
    ) -> Path:
        """Write the artefact, ``certificate.json`` and ``README.md`` into ``folder``.

        The folder appears whole or not at all, and is durable when this returns. An existing folder is
        replaced only when it is empty or an earlier release and ``overwrite`` is true.

        Parameters
        ----------
        folder : path or FolderDraft
            A path, or what `reserve` gave: that is written, and `commit` gives it its name when all of
            it is there.
        overwrite : bool
        summary : str, optional
            The text of ``summary.json``, which the report reads.
        """
        files = self._files(summary)
        if isinstance(folder, FolderDraft):
            _write(folder, files)
            return folder.target
        with reserve(folder, overwrite, sum(map(len, files.values()))) as draft:
            _write(draft, files)
            return commit(draft, overwrite)

    def _files(self, summary: str | None) -> dict[str, bytes]:
        """Everything that goes into the folder."""
        artefact = self.artefact()
        digest = hashlib.sha256(artefact).hexdigest()
        files: dict[str, bytes | str] = {self.file: artefact}
        if self.certificate is not None:
            stated = replace(self.certificate, metric_sha256=digest)
            files[CERTIFICATE_FILE] = stated.to_json() + "\n"
        files |= {README_FILE: self.readme(), **self.further(digest)}
        if summary is not None:
            files[SUMMARY_FILE] = summary
        return {n: one.encode() if isinstance(one, str) else one for n, one in files.items()}

    @classmethod
    def reserve(cls, folder: str | Path, *, overwrite: bool = False) -> FolderDraft:
        """Make sure of the folder of a release, and of room for it, before anything is spent on it."""
        return reserve(folder, overwrite, ROOM)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a release and check that it is the one its certificate was made for.

        Raises
        ------
        InputError
            When a file is missing, truncated, tampered with or of a newer version.
        """
        artefact, file, certificate = cls.checked(folder)
        found: Any = cls.read(artefact, file)
        return replace(found, certificate=certificate)  # type: ignore[no-any-return]

    @classmethod
    def checked(cls, folder: str | Path) -> tuple[bytes, Path, Certificate | None]:
        """The artefact's content and place, and the certificate that was made for it; see `load`."""
        file = Path(folder) / cls.file
        if not file.exists():
            if (other := _kind_in(folder)) is not None:
                what = "metric" if cls.what == "release" else cls.what
                raise InputError(
                    f"{folder} holds no {what}, but a {other.what}: in Python {other.__name__}.load "
                    "reads it, and `pairveil certificate` and `report` take it"
                )
            why = f"{cls.file} is missing" if Path(folder).exists() else "there is no such folder"
            raise InputError(f"{folder} holds no {cls.what}: {why}")
        artefact = read_regular(file, most=cls.most)
        cls.check_whole(artefact, file)
        return artefact, file, read_certificate(file.parent, file, artefact)

    def readme(self) -> str:
        """The page that travels with the release."""
        promise = (
            f"NOT PRIVATE: this {self.what} was made without noise and promises nothing. Do not hand it out."
            if self.certificate is None
            else self.certificate.promise()
        )
        about = self.about()
        return README.format(promise=promise, **about._asdict())


def _write(draft: FolderDraft, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        draft.write(name, content)


README = """# {title}, released with pairveil

{promise}

## What is here

{holds}
- `certificate.json`: the guarantee and all that is needed to recompute it.
{besides}{sections}
## Use

```python
{use}
```

Check it: `pairveil certificate path/to/this/folder` verifies the file and recomputes every epsilon. Noise and
kappa are the sender's word: add `--signer KEY` to check who signed it, if there is a `signature.dsse.json`.
"""


class JsonRelease(Release):
    """A release whose artefact is a JSON file."""

    format: ClassVar[str]

    def content(self) -> dict[str, Any]:
        """All that is released, for JSON: by default the fields beside the certificate."""
        parts = {name: getattr(self, name) for name in self._fields()}
        return {name: getattr(part, "tolist", lambda p=part: p)() for name, part in parts.items()}

    @classmethod
    def of(cls, content: dict[str, Any]) -> Self:
        """From what `content` gave, without its certificate; KeyError, TypeError or ValueError if not."""
        return cls(**{name: content[name] for name in cls._fields()})

    @classmethod
    def _fields(cls) -> list[str]:
        return [one.name for one in fields(cls) if one.name != "certificate"]  # type: ignore[arg-type]

    def artefact(self) -> bytes:
        """The content with its format and version."""
        stated = {"format": self.format, "version": JSON_VERSION, **self.content()}
        return (json.dumps(stated, indent=1, allow_nan=False) + "\n").encode()

    @classmethod
    def read(cls, artefact: bytes, file: Path) -> Self:
        """From the text of the file."""
        content = parse_json(artefact, str(file))
        if not isinstance(content, dict) or content.get("format") != cls.format:
            raise InputError(f"{file} is no pairveil {cls.what}")
        if content.get("version") != JSON_VERSION:
            raise InputError(f"{file} was written by another version of pairveil; update pairveil")
        try:
            return cls.of(content)
        except InputError as problem:
            raise InputError(
                f"{file} lacks a field or holds one of a wrong type: {problem}"
            ) from None
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError(f"{file} lacks a field or holds one of a wrong type") from None


_KINDS = {
    METRIC_FILE: "pairveil.release.metric:ReleasedMetric",
    LINKAGE_FILE: "pairveil.release.linkage:ReleasedLinkage",
    CURVE_FILE: "pairveil.release.curve:ErrorCurve",
    RANKING_FILE: "pairveil.release.payloads:ReleasedRanking",
    CLUSTERS_FILE: "pairveil.release.payloads:ReleasedClusters",
    NETWORK_FILE: "pairveil.release.payloads:DescribedNetwork",
}


def load_release(folder: str | Path) -> Any:
    """Read a release of any kind, and check that it is what its certificate was made for.

    What a kind needs is loaded now and not before.

    Raises InputError: when a file is missing, truncated, tampered with or of a newer version.
    """
    return _kind_in(folder, METRIC_FILE).load(folder)


def _kind_in(folder: str | Path, otherwise: str | None = None) -> Any:
    """The class of what a folder holds; where it holds none, that of another file, or None."""
    file = next((file for file in _KINDS if (Path(folder) / file).exists()), otherwise)
    module, _, name = _KINDS[file].partition(":") if file else ("", "", "")
    return getattr(import_module(module), name) if file else None
