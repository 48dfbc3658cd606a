"""What a receiver does with a release: check it, read its page, use it; and the sender's signature."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from pairveil.errors import InputError, MissingExtraError
from pairveil.jobs.job import FILES, RECEIVE, REPORT, Job, Telling, argument, option
from pairveil.jobs.options import (
    FEATURES_HELP,
    GraphOptions,
    IdOption,
    PageOptions,
    released_folder,
    write_page,
)
from pairveil.jobs.reading import read_people_of
from pairveil.jobs.spending import tell_epsilons
from pairveil.release import FORMATS

SIGNATURES = {
    "absent": "not signed",
    "not checked": "signed, but by whom was not checked: give --signer PUBLIC_KEY",
    "refused": "the signature does not hold",
    "valid": "signed by the holder of the key",
}


@dataclass(frozen=True, kw_only=True)
class CertificateJob(GraphOptions, Job):
    """Verify a release's file and epsilon, and say what is promised to whom.

    Says what was recomputed and what is the sender's word. Labels in PAIRS are not looked at.

    Example: `pairveil certificate release/`

    Example: `pairveil certificate release/ --signer sender.pub --pairs pairs.csv`
    """

    name: ClassVar = "certificate"
    panel: ClassVar = RECEIVE

    folder: Path = released_folder()
    signer: Path | None = option(None, "Public key (PEM) that must have signed this release.")
    pairs: Path | None = option(None, "Pairs given to the fit: recount kappa.", panel=FILES)
    salt: Path | None = option(None, "The sender's salt, to compare the graph.", panel=FILES)

    def work(self, tell: Telling) -> None:
        """Recompute, compare, and give the verdict."""
        from pairveil.release.release import load_release

        if self.salt is not None and self.pairs is None:
            raise InputError("--salt goes with --pairs PAIRS")
        signature, failures, said = self._signature()
        try:
            found = load_release(self.folder).certificate
        except InputError as problem:
            raise InputError(failures[0] if failures else str(problem)) from None
        if found is None:
            raise InputError(
                f"{self.folder} has no certificate: this metric was not learned privately"
            )
        try:
            result = found.verify()
        except MissingExtraError as problem:
            known = "; ".join(failures) or f"the file is the certified one, {SIGNATURES[signature]}"
            raise MissingExtraError(f"{known}. {problem}") from None
        if not result:
            failures.append("the certificate does not hold: " + "; ".join(result.problems))
        graph = self._recount(found) if self.pairs is not None and result else None
        if graph is not None and graph.problems:
            failures.append(
                f"{self.pairs} and the certificate differ: " + "; ".join(graph.problems)
            )
        judged = self._verdict(found, failures, result)
        if not judged.usable:
            tell.say(judged.line)
        else:
            short = in_short(judged, found)
            tell.say(
                f"Verified. {short} {SIGNATURES[signature][0].upper()}{SIGNATURES[signature][1:]}.",
                f"{judged.checked}.",
                *judged.sentences,
            )
        if result and not failures:
            tell_epsilons(tell, found, "epsilon of this release")
            self._tell_checked(signature, said, graph, tell)
            tell.say(f"In exact words: {found.promise()}")
        shown = _as_json(found, result, signature, said, graph)
        tell.result(shown | {"verdict": asdict(judged)})
        if failures:
            raise InputError("; ".join(failures))

    def _recount(self, found: Any) -> Any:
        from pairveil.jobs.recount import read_salt, recount
        from pairveil.records.identity import index_pairs

        indexed = index_pairs(self.read_graph(str(self.pairs)))
        return recount(found, indexed, None if self.salt is None else read_salt(self.salt))

    def _signature(self) -> tuple[str, list[str], Any]:
        """What is known of the signature, what is wrong with it, and what it says if it holds."""
        from pairveil.release.signing import check_signature, is_signed

        if self.signer is None and not is_signed(self.folder):
            return "absent", [], None
        try:
            signature = check_signature(self.folder, self.signer)  # without a key: of these files?
            return ("valid", [], signature) if self.signer else ("not checked", [], None)
        except InputError as problem:
            return ("refused" if is_signed(self.folder) else "absent"), [str(problem)], None

    def _verdict(self, found: Any, failures: list[str], result: Any) -> Any:
        """The verdict; what the sender's ledger says of all releases is in the summary."""
        from pairveil.privacy.verdict import Releases, verdict
        from pairveil.report.data import read_summary

        releases = None
        try:
            budget = read_summary(self.folder).budget
            releases = None if budget is None else Releases(len(budget.entries), budget.best_guess)
        except InputError as problem:
            failures.append(str(problem))
        problems = () if failures else result.problems
        return verdict(found, problems=problems, failures=failures, releases=releases)

    def _tell_checked(self, signature: str, said: Any, graph: Any, tell: Telling) -> None:
        from pairveil.privacy.verify import RECOMPUTED

        tell.say(f"Verified: the file is the certified one; recomputed: {'; '.join(RECOMPUTED)}.")
        for sentence in () if graph is None else graph.sentences:
            tell.say(f"From the graph: {sentence}.")
        word = "Noise and kappa are"
        if graph is not None and graph.kappa_matches:
            word = "Noise is"
        elif graph is not None and graph.unknown:
            word = f"Noise, and kappa of unit {' and '.join(graph.unknown)}, are"
        tell.say(f"{word} the sender's word; {SIGNATURES[signature]}.")
        if said is not None:
            when = f"on {said.signed_at}" if said.signed_at else "on a date that it does not state"
            tell.say(f"Signed {when}; a newer release of the sender's may exist.")
        if said is not None and said.uncovered:
            tell.say(f"NOT covered by the signature: {', '.join(said.uncovered)}.")


def in_short(judged: Any, certificate: Any) -> str:
    """The bounds of a verdict in one short sentence.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from pairveil.privacy.certificate import _example
    >>> from pairveil.privacy.verdict import Verdict
    >>> in_short(Verdict(True, (), "", {"relationship": 61, "person": 71}), _example())
    'At most 61 in 100 for a relationship, 71 for a person. A coin gets 50.'
    """

    named = {
        certificate.words.called.get(unit, unit): times for unit, times in judged.in_100.items()
    }
    bounds = [f"{times} for a {name}" for name, times in named.items() if times is not None]
    none = [f"a {name}" for name, times in named.items() if times is None]
    several = f"All {judged.releases} releases together: at" if (judged.releases or 0) > 1 else "At"
    said = (
        f"{several} most {', '.join(bounds).replace(' for', ' in 100 for', 1)}. " if bounds else ""
    )
    said += f"Nothing for {' or '.join(none)}. " if none else ""
    return f"{said}A coin gets 50."


def _as_json(found: Any, result: Any, signature: str, said: Any, graph: Any) -> dict[str, Any]:
    from pairveil.privacy.verify import RECOMPUTED, SENDERS_WORD

    return {
        **found.to_dict(),
        "valid": bool(result),
        "problems": [*result.problems, *(graph.problems if graph is not None else [])],
        "best_guess": {unit: found.best_guess(unit) for unit in found.units},
        "recomputed": list(RECOMPUTED) if result else [],
        "senders_word": list(SENDERS_WORD),
        "signed": signature == "valid",
        "signature": signature,
        "signed_at": None if said is None else said.signed_at,
        "uncovered": None if said is None else list(said.uncovered),
        "kappa_matches": None if graph is None else graph.kappa_matches,
        "graph_matches": None if graph is None else graph.graph_matches,
    }


@dataclass(frozen=True, kw_only=True)
class SignJob(Job):
    """Sign a release, so that its receivers can tell that it is yours and unchanged.

    The signature is an Ed25519 one in a DSSE envelope and names the SHA-256 of every file.

    Example: `pairveil sign --new-key sender.pem`

    Example: `pairveil sign release/ --key sender.pem`
    """

    name: ClassVar = "sign"
    panel: ClassVar = RECEIVE

    folder: Path | None = argument("FOLDER", "Folder of a release.", None)
    key: Path | None = option(None, "Your private key (PEM, Ed25519).")
    new_key: Path | None = option(None, "Make a key: FILE for you alone, FILE.pub for everybody.")

    def work(self, tell: Telling) -> None:
        """Make a key, or sign with one."""
        from pairveil.release import signing

        if self.new_key is not None and self.folder is None and self.key is None:
            public = signing.new_key(self.new_key)
            tell.say(f"Private key: {self.new_key} (keep it to yourself). Public key: {public}.")
            tell.result({"key": str(self.new_key), "public_key": str(public)})
        elif self.folder is not None and self.key is not None and self.new_key is None:
            written = signing.sign(self.folder, self.key)
            tell.say(
                f"Signed: {written}. To check: `pairveil certificate {self.folder} --signer PUBLIC_KEY`."
            )
            tell.result({"signed": True, "out": str(written)})
        else:
            raise InputError("give a folder and --key FILE to sign it, or --new-key FILE alone")


@dataclass(frozen=True, kw_only=True)
class ReportJob(PageOptions, IdOption, Job):
    """Write the page that says what is promised to whom, for people who do not code.

    One HTML file that needs no network. Every epsilon on it is recomputed first. Scores come from a public
    test table or from an evaluation that was charged; maps from a public table only.

    Example: `pairveil report release/ -o report.html`

    Example: `pairveil report linkage/ --threshold operating-point/`

    Example: `pairveil report release/ --title "Tumours" --public-test public.csv --test-classes diagnosis`

    Example: `pairveil report release/ --audit --evaluation score.json`
    """

    name: ClassVar = "report"
    panel: ClassVar = RECEIVE

    folder: Path = released_folder()
    out: Path | None = option(None, "HTML file to write. [default: DIR/report.html]", "-o")
    classes: str | None = option(None, "Earlier name of --test-classes.", hidden=True)
    evaluation: Path | None = option(
        None, "What `pairveil evaluate --epsilon --out` wrote about this release.", panel=REPORT
    )
    threshold: Path | None = option(
        None,
        "Release of `pairveil threshold` for this model: drawn on the same page.",
        panel=REPORT,
        typed=False,
    )

    def work(self, tell: Telling) -> None:
        """Read the release, recompute, and write the page."""
        from pairveil.release.release import REPORT_FILE, check_unsigned
        from pairveil.report.facts import verdict_of

        check_unsigned(self.folder, self.folder / REPORT_FILE if self.out is None else self.out)
        classes = self.classes if self.test_classes is None else self.test_classes
        about: dict[str, Any] = {"curve": self.threshold, "evaluation": self.evaluation}
        page, data = write_page(
            self.folder, self, self.out, tell, id=self.id, classes=classes, **about
        )
        judged, size = verdict_of(data), page.stat().st_size
        if not judged.usable and not self.json:
            tell.always(judged.line)
        tell.say(f"Report: {page} ({size / 1000:.0f} kB, no network needed)")
        valid = None if data.problems is None else not data.problems
        problems = list(data.problems or ())
        tell.result({"out": str(page), "bytes": size, "valid": valid, "problems": problems})


@dataclass(frozen=True, kw_only=True)
class TransformJob(IdOption, Job):
    """Map people into the space where the learned metric is Euclidean.

    Example: `pairveil transform release/ people.csv -o projected.parquet`
    """

    name: ClassVar = "transform"
    panel: ClassVar = RECEIVE
    extra: ClassVar = "tables"

    folder: Path = released_folder()
    features: Path = argument("FEATURES", FEATURES_HELP)
    out: Path = option(..., "File to write, .csv or .parquet.", "-o")

    def work(self, tell: Telling) -> None:
        """Project."""
        from pairveil.records.tables import write_columns
        from pairveil.release.metric import ReleasedMetric

        metric = ReleasedMetric.load(self.folder)
        people = read_people_of(metric, self.features, self.id)
        projected = metric.project(people.values)
        columns = {f"component_{i + 1}": projected[:, i] for i in range(projected.shape[1])}
        write_columns(self.out, {self.id: people.ids, **columns})
        n_rows, n_components = len(projected), metric.n_components
        tell.say(f"{n_rows:,} people in {n_components} dimensions: {self.out}")
        tell.result({"n_rows": n_rows, "n_components": n_components, "out": str(self.out)})


@dataclass(frozen=True, kw_only=True)
class ExportJob(Job):
    """Write a released metric as ONNX, CSV, a scikit-learn pickle, SQL or sentence-transformers' Dense.

    It takes the same raw rows as the release; a format that cannot hold the release's schema is refused.

    Example: `pairveil export release/ --to onnx -o metric.onnx`
    """

    name: ClassVar = "export"
    panel: ClassVar = RECEIVE

    folder: Path = released_folder()
    to: str = option(..., "Format to write.", choices=tuple(FORMATS))
    out: Path = option(..., "File (or folder, for dense) to write.", "-o")

    def work(self, tell: Telling) -> None:
        """Load, and write."""
        from pairveil.release.metric import ReleasedMetric

        metric = ReleasedMetric.load(self.folder)
        file = metric.export(self.to, self.out)
        rows = "" if metric.schema is None else ", of raw rows (the schema is inside)"
        size = f"{metric.n_components} x {metric.n_features}"
        tell.say(f"{size} metric as {self.to}{rows}: {file}")
        if self.to == "sklearn":
            tell.say("A pickle runs code when it is read: keep this file inside your own house.")
        parts = file.iterdir() if file.is_dir() else [file]
        written = sum(one.stat().st_size for one in parts)
        tell.result({"out": str(file), "to": self.to, "bytes": written})
