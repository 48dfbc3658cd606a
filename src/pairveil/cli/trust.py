"""`certificate` and `sign`: what a release promises, what of it was checked, and who stands behind it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from pairveil.cli.output import JsonFlag, QuietFlag, print_json, spoken_warnings, stdout
from pairveil.cli.pair_options import PANEL, GraphOptions
from pairveil.cli.planned import print_epsilons
from pairveil.cli.release import ReleaseFolder
from pairveil.errors import InputError


def certificate(
    folder: ReleaseFolder,
    signer: Annotated[
        Path | None,
        typer.Option("--signer", help="Public key (PEM) that must have signed this release."),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs", help="Pairs given to the fit: recount kappa.", rich_help_panel=PANEL
        ),
    ] = None,
    salt: Annotated[
        Path | None,
        typer.Option(
            "--salt", help="The sender's salt, to compare the graph.", rich_help_panel=PANEL
        ),
    ] = None,
    reading: GraphOptions = GraphOptions(),
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Verify a release's file and epsilon, and say what is promised to whom.

    Says what was recomputed and what is the sender's word. Labels in PAIRS are not looked at.

    Example: `pairveil certificate release/`

    Example: `pairveil certificate release/ --signer sender.pub --pairs pairs.csv`
    """
    from pairveil.cli.recount import read_salt, recount
    from pairveil.release.release import load_release

    if salt is not None and pairs is None:
        raise InputError("--salt goes with --pairs PAIRS")
    signature, failures, said = _signature(folder, signer)
    try:
        found = load_release(folder).certificate
    except InputError as problem:
        raise InputError(failures[0] if failures else str(problem)) from None
    if found is None:
        raise InputError(f"{folder} has no certificate: this metric was not learned privately")
    result = found.verify()
    if not result:
        failures.append("the certificate does not hold: " + "; ".join(result.problems))
    graph = None
    if pairs is not None and result:
        from pairveil.records.resolving import index_pairs

        with spoken_warnings(quiet or json_):
            indexed = index_pairs(reading.read(pairs))
        graph = recount(found, indexed, None if salt is None else read_salt(salt))
        failures += [f"{pairs} and the certificate differ: " + "; ".join(graph.problems)] * bool(
            graph.problems
        )
    judged = _verdict(folder, found, failures, result)
    if json_:
        print_json(_as_json(found, result, signature, said, graph) | {"verdict": asdict(judged)})
    elif not quiet:
        if not judged.usable:
            stdout.print(judged.line, markup=False)
        else:
            stdout.print(f"{judged.checked}. {_SIGNATURES[signature].capitalize()}.")
            for sentence in (judged.headline, *judged.sentences):
                stdout.print(sentence, markup=False)
        if result and not failures:
            print_epsilons(found, f"epsilon of this release at delta {found.delta:g}, by unit")
            _say_what_was_checked(signature, said, graph)
            stdout.print(f"In exact words: {found.promise()}", markup=False)
    if failures:
        raise InputError("; ".join(failures))


def _verdict(folder: Path, found: Any, failures: list[str], result: Any) -> Any:
    """The verdict; what the sender's ledger says of all releases is in the summary."""
    from pairveil.privacy.verdict import Releases, verdict
    from pairveil.report.stored import read_summary

    releases = None
    try:
        budget = read_summary(folder).budget
        releases = None if budget is None else Releases(len(budget.entries), budget.best_guess)
    except InputError as problem:
        failures.append(str(problem))
    problems = () if failures else result.problems
    return verdict(found, problems=problems, failures=failures, releases=releases)


def _signature(folder: Path, signer: Path | None) -> tuple[str, list[str], Any]:
    """What is known of the signature, what is wrong with it, and what it says if it holds."""
    from pairveil.release.signing import check_signature, is_signed

    if signer is None:
        return ("not checked" if is_signed(folder) else "absent"), [], None
    try:
        return "valid", [], check_signature(folder, signer)
    except InputError as problem:
        return ("refused" if is_signed(folder) else "absent"), [str(problem)], None


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


_SIGNATURES = {
    "absent": "not signed",
    "not checked": "signed, but by whom was not checked: give --signer PUBLIC_KEY",
    "refused": "the signature does not hold",
    "valid": "signed by the holder of the key",
}


def _say_what_was_checked(signature: str, said: Any, graph: Any) -> None:
    from pairveil.privacy.verify import RECOMPUTED

    stdout.print(
        "Verified: the file is the certified one; recomputed: " + "; ".join(RECOMPUTED) + "."
    )
    for sentence in () if graph is None else graph.sentences:
        stdout.print(f"From the graph: {sentence}.", markup=False)
    word = "Noise and kappa are"
    if graph is not None and graph.kappa_matches:
        word = "Noise is"
    elif graph is not None and graph.unknown:
        word = f"Noise, and kappa of unit {' and '.join(graph.unknown)}, are"
    stdout.print(f"{word} the sender's word; {_SIGNATURES[signature]}.")
    if said is not None:
        when = f"on {said.signed_at}" if said.signed_at else "on a date that it does not state"
        stdout.print(f"Signed {when}; a newer release of the sender's may exist.", highlight=False)
    if said is not None and said.uncovered:
        stdout.print(f"NOT covered by the signature: {', '.join(said.uncovered)}.", markup=False)


def sign(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of a release.", show_default=False)
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Your private key (PEM, Ed25519).")
    ] = None,
    new_key: Annotated[
        Path | None,
        typer.Option("--new-key", help="Make a key: FILE for you alone, FILE.pub for everybody."),
    ] = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Sign a release, so that its receivers can tell that it is yours and unchanged.

    The signature is an Ed25519 one in a DSSE envelope and names the SHA-256 of every file.

    Example: `pairveil sign --new-key sender.pem`

    Example: `pairveil sign release/ --key sender.pem`
    """
    from pairveil.release import signing

    if (folder is None) == (new_key is None) or (folder is None) != (key is None):
        raise InputError("give a folder and --key FILE to sign it, or --new-key FILE alone")
    if new_key is not None:
        public = signing.new_key(new_key)
        _done({"key": str(new_key), "public_key": str(public)}, json_, quiet,
              f"Private key: {new_key} (keep it to yourself). Public key: {public}.")  # fmt: skip
        return
    assert folder is not None
    assert key is not None
    written = signing.sign(folder, key)
    _done({"signed": True, "out": str(written)}, json_, quiet,
          f"Signed: {written}. To check: `pairveil certificate {folder} --signer PUBLIC_KEY`.")  # fmt: skip


def _done(shown: dict[str, Any], json_: bool, quiet: bool, sentence: str) -> None:
    if json_:
        print_json(shown)
    elif not quiet:
        stdout.print(sentence, markup=False)
