"""What a receiver does with a release: check it, read its page, use it; and the sender's signature."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pairveil.errors import InputError, MissingExtraError
from pairveil.files import write_file
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
from pairveil.privacy.units import (
    ASSUMED_TOPOLOGY,
    NOISE_SOURCES,
    PEOPLE_TOGETHER,
    UNITS,
    UNKNOWN_TOPOLOGY,
)
from pairveil.records.kinds import KINDS
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
            if found is None:
                raise InputError(f"{self.folder} has no certificate: it was not learned privately")
        except InputError as problem:
            raise InputError(failures[0] if failures else str(problem)) from None
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


# ---- kappa recounted from the public graph, and that graph named by a salted digest ----------------

_MOST_BYTES = 4096
_OF_PAIRS = {name for name, kind in KINDS.items() if kind.on_pairs or kind.holds_pairs}
"""Kinds of records that are made of pairs; a certificate that is recounted has one of them."""


_NOT_PLAIN = "the certificate does not say plainly how many records a person has"


class Recount(NamedTuple):
    """What the public graph says of a certificate."""

    # True: kappa of every unit was counted from the graph, and none is above what is stated. False: one
    # is, or this is another graph. None: of some unit it could not be counted.
    kappa_matches: bool | None
    graph_matches: bool | None  # its digest is the certificate's; None where that was not compared
    unknown: tuple[str, ...]  # units whose kappa was not counted and stays the sender's word
    sentences: list[str]  # what was compared, for people
    problems: list[str]  # what does not agree


def recount(certificate: Any, indexed: Any, salt: bytes | None) -> Recount:
    """Compare a certificate with the public graph of all given pairs; ``salt`` is for its digest."""
    c = certificate
    sentences: list[str] = []
    problems = _other_graph(c, indexed, sentences)
    counted = {} if problems else kappas_of(c, indexed)
    right = []
    for unit in c.units:
        found = counted.get(unit)
        if isinstance(found, str):
            sentences.append(f"kappa of unit '{unit}' was not counted: {found}")
        elif found is not None and found > c.kappas[unit]:
            problems.append(
                f"the used pairs need a kappa of {found} at least for unit '{unit}', and the certificate "
                f"states {c.kappas[unit]}"
            )
        elif found is not None:
            right.append(unit)
    unknown = tuple(unit for unit in c.units if not isinstance(counted.get(unit), int))
    if right and not problems:
        sentences.append(
            f"the pairs of the selection '{c.selection['how']}' were found again and kappa counted in them "
            f"({', '.join(right)}): none is above what is stated"
        )
    matches = False if problems else (None if unknown else True)
    same = _same_graph(c, indexed, salt, sentences, problems)
    return Recount(matches, same, unknown, sentences, problems)


def _other_graph(c: Any, indexed: Any, sentences: list[str]) -> list[str]:
    """What shows that these are not the pairs given to the fit, where it was given pairs."""
    from pairveil.graph.kappa import kappa

    if c.records not in _OF_PAIRS or UNKNOWN_TOPOLOGY in c.public:
        return []
    if c.parties is not None:
        sentences.append(
            "several parties gave pairs; that kappa follows from theirs by the stated rule was recomputed"
        )
        return []
    edges = indexed.pairs
    if len(edges) != c.n_pairs_given:
        return [f"these are {len(edges):,} pairs, and {c.n_pairs_given:,} were given to the fit"]
    if KINDS[c.records].holds_pairs and c.selection["how"] == "all":
        return []  # groups that were given: no pair was dropped, and none is a record
    counted, stated = kappa(edges).relationship, c.selection["full_graph_relationship_kappa"]
    if stated < counted:
        return [f"kappa of all pairs is {counted}, and the certificate states {stated}"]
    sentences.append(f"kappa of all pairs was recounted: {counted}, stated {stated}")
    return []


def kappas_of(c: Any, indexed: Any) -> dict[str, int | str]:
    """kappa of each unit of a certificate, counted from the graph; why not, where its own meaning was not.

    A number is returned only where the pairs of *all* queries are known to be in the graph and the unit's
    own meaning was counted in them: a person's as one id, an entity's as its R largest degrees, a group's as
    a component that is small enough to be one group. The certificate must not contradict itself.
    """
    from pairveil.graph.kappa import kappa
    from pairveil.learners.preparing import pairs_of_entity

    used = _used(c, indexed)
    if isinstance(used, str):
        return dict.fromkeys(c.units, used)
    if KINDS[c.records].holds_pairs:
        return _kappas_of_groups(c, used)
    found = kappa(used)
    counted: dict[str, int | str] = {unit: found.of(unit) for unit in UNITS}
    records = _entity_records(c)
    if isinstance(records, str):
        return counted | dict.fromkeys(("relationship", "person"), records)
    if records is not None:
        person = pairs_of_entity(used, records)
        related = found.relationship if records == 1 else max(found.relationship, person)
        counted |= {"relationship": related, "person": person}
    if PEOPLE_TOGETHER in c.public:
        counted["person"] = (
            "it covers people who change together, and the column that says who does is not in this file"
        )
    return counted


def _entity_records(c: Any) -> int | str | None:
    """How many records a person has at most; None: a person is one; why not, where it is not plain."""
    from pairveil.learners.preparing import ENTITY, entity_sentence

    parts = [c.plan.get(name) or {} for name in ("linkage", "error_curve")]
    if not all(isinstance(part, dict) for part in parts):
        return _NOT_PLAIN
    stated = [part.get("entity_records") for part in parts]
    numbers = {one for one in stated if isinstance(one, int)}
    if any(one is not None and not isinstance(one, int) for one in stated):
        return _NOT_PLAIN
    said = [one for one in c.public if one.startswith(ENTITY.partition("{n}")[0])]
    plain = len(numbers) == 1 and all(isinstance(one, int) and one >= 1 for one in numbers)
    if not numbers and not said:
        return None
    if plain and said in ([entity_sentence(n, e)] for n in numbers for e in (False, True)):
        return int(numbers.pop())
    return _NOT_PLAIN


def _kappas_of_groups(c: Any, used: Any) -> dict[str, int | str]:
    """One group for each unit, if the pairs fall into clusters that can be groups."""
    import numpy as np

    from pairveil.learners.preparing import components
    from pairveil.records.groups import MOST_PEOPLE

    size = c.plan.get("group_size")
    limit = size if isinstance(size, int) and 2 <= size <= MOST_PEOPLE else MOST_PEOPLE
    clusters = components(used, int(used.max()) + 1)
    largest = int(np.bincount(clusters[clusters >= 0]).max())
    # Groups share nobody, so people who are joined by pairs are in one. Where more people are joined than a
    # group holds, their pairs are in several records, and some person's are in two at least.
    return {unit: 1 if unit == "pair" or largest <= limit else 2 for unit in c.units}


def _used(c: Any, indexed: Any) -> Any:
    """The pairs that all queries were about, by the same public rule; why not, where they cannot be told."""
    import numpy as np

    from pairveil.graph.choosing import select_pairs

    kinds = set(c.costs_of)
    if c.parties is not None:
        return "each of several parties selected its own pairs, and counted them"
    if "search" in c.plan:
        return "which pairs a search held out for its scores is not told"
    if not kinds <= _OF_PAIRS or len(kinds) > 1:
        return f"the certificate is about {' and '.join(sorted(kinds))}, and the file lists pairs"
    if UNKNOWN_TOPOLOGY in c.public or ASSUMED_TOPOLOGY in c.public:
        return "the fit was not told who is in which pair"
    others = c.plan.get("thresholds") or ()
    if not all(isinstance(one, dict) and one.get("same_pairs") is True for one in others):
        return (
            "a threshold or an error curve was measured on other pairs, which are not in this file"
        )
    if c.selection["how"] == "all" and "score" not in c.plan:
        return indexed.pairs
    if PEOPLE_TOGETHER in c.public:
        return (
            "the pairs were selected by a column of who changes together, which is not in this file"
        )
    if not NOISE_SOURCES.get(c.noise_source, False):
        return "the pairs were selected by the seed, which is not in the certificate"
    size = c.plan.get("group_size") if KINDS[c.records].holds_pairs else None
    try:
        # As a fit does.
        kept = select_pairs(indexed, c.selection["how"], random_state=0, group_size=size)
        used = indexed.pairs[kept]
        if "score" in c.plan:
            from pairveil.evaluation.held_out import split_people

            parts = split_people(used, min(c.plan["score"]["n_pairs"], len(used)), seed=0)
            used = used[np.sort(np.concatenate(parts))]
        if len(used) == c.n_pairs_used:
            return used
    except (InputError, KeyError, TypeError, ValueError):  # the sender's words make no sense
        pass
    return "the selection could not be made again (another version's, perhaps)"


def _same_graph(
    c: Any, indexed: Any, salt: bytes | None, sentences: list[str], problems: list[str]
) -> bool | None:
    from pairveil.graph.kappa import digest_of

    if c.graph_digest is None:
        sentences.append("the certificate carries no digest of the graph to compare with")
        return None
    if salt is None:
        sentences.append("the graph's digest was not compared: it needs the sender's --salt FILE")
        return None
    same = bool(digest_of(indexed.ids, indexed.pairs, salt) == c.graph_digest)
    if same:
        sentences.append("the graph is the certified one: its digest agrees")
    else:
        problems.append("this is not the certified graph, or not its salt: the digest differs")
    return same


def read_salt(file: Path) -> bytes:
    """The salt that `make_salt` wrote."""
    advice = "it is written by `pairveil fit --graph-salt FILE`"
    if not file.is_file() or file.stat().st_size > _MOST_BYTES:
        raise InputError(f"--salt: {file} is no file with a salt; {advice}")
    try:
        salt = bytes.fromhex(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        raise InputError(f"--salt: {file} holds no salt; {advice}") from None
    if len(salt) < 16:
        raise InputError(f"--salt: {file} holds no salt of 16 bytes or more; {advice}")
    return salt


def make_salt(file: Path) -> bytes:
    """A salt for the graph's digest: read if the file is there, else made, for its owner alone."""
    if file.exists():
        return read_salt(file)
    salt = secrets.token_bytes(32)
    write_file(file, salt.hex() + "\n", mode=0o600, new=True)
    return salt


def salted_digest(found: Any, salt: Path) -> str:
    """The salted name of the given graph, by the ids of the pairs file: who checks it has no other."""
    from pairveil.graph.kappa import digest_of
    from pairveil.records.identity import index_pairs

    indexed = index_pairs(found)
    return digest_of(indexed.ids, indexed.pairs, make_salt(salt))
