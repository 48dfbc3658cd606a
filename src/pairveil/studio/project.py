"""The folder of a studio: what was uploaded, decided and made, in files that the command line reads too.

========================  ============================================================================
``people.*``, ``pairs.*``  the uploaded tables; removed when the run is over, with ``levels.*``, ``public.*``
``.part-*``               a table that is being received
``schema.toml``           public facts about the columns, as ``pairveil schema`` writes them
``settings.json``         what was decided (a `Decisions`)
``columns.json``, ``plan.json``, ``kappa.json``  what commands answered; made anew when a file changes
``problems.csv``          what is wrong with the tables, by row numbers: private, and goes with them
``fit.checkpoint``        of a fit in progress: the same command resumes it
``fit.json``, ``fit.log``  the command of the fit, and what it said
``release/``              the release and its report
``sender.pem``, ``sender.pem.pub``  the key that releases are signed with, and what receivers check it by
``.received/``            files of a release that is being read
========================  ============================================================================
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from pairveil.errors import InputError
from pairveil.files import write_file
from pairveil.foreign import parse_json, read_regular
from pairveil.printable import printable

TABLES = ("people", "pairs", "levels", "public")
ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".json")
MOST_BYTES = 4 << 30
MOST_COLUMNS = 2_000  # each is a box of the form: 5 MB of page
_ANSWERS = ("columns.json", "plan.json", "kappa.json", "certificate.json", "problems.csv")


@dataclass(frozen=True)
class Decisions:
    """What the user decided; everything in it is public."""

    learns_from: str = (
        "pairs"  # "classes": a column of the people's table; "levels": record linkage
    )
    people_name: str = ""
    pairs_name: str = ""
    levels_name: str = ""
    classes: str = ""
    id: str = "id"
    left: str = "left"
    right: str = "right"
    label: str = "label"
    zero_means: str = ""
    leave_out: str = ""  # "yes": pairs and people whose ids are faulty are left out
    merge_similar_ids: str = (
        ""  # "yes": ids that differ only in case, spaces or Unicode form are one
    )
    public_name: str = ""
    public_classes: str = ""
    epsilon: float = 1.0
    delta: float = 1e-5
    unit: str = "relationship"
    select: str = "paths"
    title: str = ""
    institution: str = ""
    purpose: str = ""
    recipient: str = ""
    audit: str = ""  # "yes": the report shows an attack on this plan
    n_levels: str = ""  # of each comparison, with commas
    prior: str = ""  # how likely two records are a match, where that is known
    score: str = ""  # "yes": some people are kept out of learning, and the metric is scored on them


class Project:
    """One folder, made for this user alone, for one release; and a ledger, by default a file in it.

    Examples
    --------
    >>> import tempfile
    >>> project = Project(tempfile.mkdtemp())
    >>> project.settings.unit, project.table("people")
    ('relationship', None)
    """

    def __init__(
        self, folder: str | Path, ledger: str | Path | None = None, budget: float = 3.0
    ) -> None:
        self.folder = Path(folder).resolve()
        self.budget = budget
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{folder} is a file; name a folder for the studio")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not any(self.folder.iterdir()):
                self.folder.chmod(0o700)
            mode = self.folder.stat().st_mode
        except OSError as problem:
            raise InputError(f"{folder} cannot be made: {problem.strerror}") from None
        if os.name == "posix" and mode & 0o077:
            raise InputError(
                f"others on this machine can look into {folder}, where private tables will be: name a new "
                f"folder, or close it to them with `chmod 700 {folder}`"
            )
        self.ledger = Path(ledger).resolve() if ledger else self.folder / "ledger.json"
        self.release, self.schema = self.folder / "release", self.folder / "schema.toml"
        self.problems, self.checkpoint = (
            self.folder / "problems.csv",
            self.folder / "fit.checkpoint",
        )
        self.key, self.public_key = self.folder / "sender.pem", self.folder / "sender.pem.pub"

    # ---- files -------------------------------------------------------------------------------------

    @property
    def has_problems(self) -> bool:
        """Whether something is wrong with the tables: there is a line below the header."""
        return self.problems.is_file() and self.problems.read_bytes().count(b"\n") > 1

    @property
    def is_released(self) -> bool:
        """Whether the release is there, whole."""
        return (self.release / "certificate.json").is_file()

    def table(self, which: str) -> Path | None:
        """An uploaded table, or None."""
        return next((f for e in ENDINGS if (f := self.folder / f"{which}{e}").is_file()), None)

    @property
    def by_classes(self) -> bool:
        """Whether is learned from a column of classes, and not from pairs."""
        return self.settings.learns_from == "classes"

    @property
    def by_levels(self) -> bool:
        """Whether a linkage model is learned, from how well records agree."""
        return self.settings.learns_from == "levels"

    @property
    def has_tables(self) -> bool:
        """Whether the tables that are learned from are here."""
        pairs = self.by_classes or self.table("pairs") is not None
        return pairs and self.table("levels" if self.by_levels else "people") is not None

    async def receive(self, which: str, name: str, content: AsyncIterator[bytes]) -> Path:
        """A table that somebody sends, whole, in a draft of its own: nothing else is touched yet.

        Of the name only the ending is believed, and only if it is known.
        """
        ending = Path(name.replace("\\", "/")).suffix.lower()
        if which not in TABLES or ending not in ENDINGS:
            raise InputError(f"choose a file that ends in {', '.join(ENDINGS)}")
        draft = self.folder / f".part-{secrets.token_hex(8)}{ending}"
        too_large = "the file is larger than 4 GB, which is more than the studio takes"
        try:
            with open(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
                async for piece in bounded(content, MOST_BYTES, too_large):
                    file.write(piece)
            if draft.stat().st_size == 0:
                raise InputError("the file is empty")
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        return draft

    def take(self, which: str, name: str, draft: Path) -> None:
        """Put a received table in the place of an earlier one; what was said of that is forgotten."""
        if not draft.exists():
            raise InputError("somebody started over meanwhile: choose the file again")
        self.forget_table(which)
        os.replace(draft, self.folder / f"{which}{draft.suffix}")
        self.forget_answers()
        named: dict[str, Any] = {f"{which}_name": printable(name)[-120:]}
        self.settings = replace(self.settings, **named)

    def forget_table(self, which: str) -> None:
        """Remove an uploaded table, and nothing else whatever the name."""
        assert which in TABLES
        for ending in ENDINGS:
            (self.folder / f"{which}{ending}").unlink(missing_ok=True)

    def forget_uploads(self) -> None:
        """Remove all tables and the list of what is wrong with them: the run is over."""
        self.problems.unlink(missing_ok=True)
        for which in TABLES:
            self.forget_table(which)
        for draft in self.folder.glob(".part-*"):
            draft.unlink(missing_ok=True)

    def forget_answers(self) -> None:
        """What commands said of earlier files or settings."""
        for name in _ANSWERS:
            (self.folder / name).unlink(missing_ok=True)

    def start_over(self) -> None:
        """Uploads, answers and settings go; the ledger and what was said of the columns stay.

        A release is put aside under a number.
        """
        self.forget_uploads()
        self.forget_answers()
        for name in ("settings.json", "fit.json", "fit.log", "fit.checkpoint"):
            (self.folder / name).unlink(missing_ok=True)
        if self.release.exists():
            number = 1
            while (aside := self.folder / f"release-{number}").exists():
                number += 1
            self.release.rename(aside)

    # ---- plain data ----------------------------------------------------------------------------------

    @property
    def settings(self) -> Decisions:
        """What was decided so far; what cannot be read counts as undecided."""
        content = self.answer("settings.json") or {}
        known = {field.name: field.type for field in fields(Decisions)}
        wanted: dict[str, Any] = {
            name: value
            for name, value in content.items()
            if name in known and isinstance(value, float if known[name] == "float" else str)
        }
        return Decisions(**wanted)

    @settings.setter
    def settings(self, decided: Decisions) -> None:
        self.keep("settings.json", asdict(decided))

    def answer(self, name: str) -> dict[str, Any] | None:
        """A JSON object that was kept, or None."""
        with suppress(OSError, InputError):
            content = parse_json(read_regular(self.folder / name), name)
            if isinstance(content, dict):
                return content
        return None

    def charged_since(self, name: str) -> bool:
        """Whether the ledger was written after an answer that may have been computed from it."""
        with suppress(OSError):
            kept = (self.folder / name).stat().st_mtime_ns
            return self.ledger.stat().st_mtime_ns > kept
        return False

    def keep(self, name: str, content: dict[str, Any]) -> None:
        """Write a JSON object, whole or not at all."""
        write_file(self.folder / name, json.dumps(content, indent=1))

    def zip_release(self) -> bytes:
        """The release as one file to download."""
        import io
        import zipfile

        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(self.release.iterdir()):
                if file.is_file() and not file.is_symlink():
                    archive.write(file, f"release/{file.name}")
        return buffer.getvalue()


async def bounded(content: AsyncIterator[bytes], most: int, why: str) -> AsyncIterator[bytes]:
    """What somebody sends, piece by piece; InputError that says ``why`` where it is too much."""
    size = 0
    async for piece in content:
        size += len(piece)
        if size > most:
            raise InputError(why)
        yield piece


def column_names(file: Path, name: str) -> tuple[str, ...]:
    """What the header of a received table says; nothing where it is no plain table.

    For the page of whoever chose the file, and kept nowhere: without a header it is somebody's row.

    Raises InputError: the table cannot be read; it is said with ``name``, the user's own for it.
    """
    from pairveil.records.files import open_table

    if file.suffix in (".txt", ".json"):
        return ()
    try:
        names = open_table(file).names
    except InputError as problem:
        raise InputError(str(problem).replace(file.name, printable(name)[-120:])) from None
    check_width(len(names))
    return () if "unique_id_l" in names else tuple(map(printable, names))


def check_width(n_columns: int) -> None:
    """Refuse a table whose form no browser would show."""
    if n_columns > MOST_COLUMNS:
        raise InputError(
            f"the table has {n_columns:,} columns, and the studio shows {MOST_COLUMNS:,} at most: choose a "
            "table with fewer"
        )
