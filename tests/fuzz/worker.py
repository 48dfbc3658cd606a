"""Reads damaged files and forged releases in a process with limits; prints what went wrong as JSON.

``python worker.py files LAYOUT N SEED`` or ``python worker.py releases N SEED`` (or ``ledgers``). Each file
has some seconds, the process some gigabytes. The only exception that may come out of the program is
`InputError`, without a canary in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mutations import OBEYED, as_text, damaged, forged
from seeds import CANARIES, seeds

from pairveil.errors import DataWarning, InputError
from pairveil.graph.kappa import kappa
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.events import GaussianEvent
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.noise import TrustedNoise
from pairveil.records.files import file_suffix
from pairveil.records.identity import index_pairs
from pairveil.records.readers import read_features, read_pairs
from pairveil.records.scaling import PublicBounds
from pairveil.release.exporters import to_csv
from pairveil.release.metric import ReleasedMetric
from pairveil.report.facts import read_release
from pairveil.report.page import render

GIGABYTES, SECONDS = 3, 20


class TooSlowError(Exception):
    """A file took longer than it may."""


def main(words: list[str]) -> None:
    """Run the case that the words name and print the outcome."""
    limit = GIGABYTES * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGALRM, _too_slow)
    kind, *rest = words
    with tempfile.TemporaryDirectory() as folder:
        cases = {
            "files": damaged_files,
            "releases": forged_releases,
            "ledgers": forged_ledgers,
            "sample": sample,
        }[kind]
        print(json.dumps(tried(cases(Path(folder), *rest))))


def _too_slow(*_: object) -> None:
    raise TooSlowError


def tried(cases: Iterator[tuple[str, bytes, Callable[[], object]]]) -> dict[str, Any]:
    """Call each case; count what was accepted and refused, keep what failed."""
    outcomes: Counter[str] = Counter()
    failures, slowest = [], 0.0
    for name, content, call in cases:
        start = time.perf_counter()
        signal.alarm(SECONDS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", DataWarning)
                call()
            outcome = "accepted"
        except InputError as problem:
            outcome = "refused"
            leaked = _leaked(str(problem), content)
            if leaked:
                outcome, shown = "leaked", f"{leaked}: {problem}"
        except BaseException as problem:
            outcome = "failed"
            last = traceback.extract_tb(problem.__traceback__)[-3:]
            places = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(last))
            shown = f"{type(problem).__name__}: {str(problem)[:200]} at {places}"
        finally:
            signal.alarm(0)
        slowest = max(slowest, time.perf_counter() - start)
        outcomes[outcome] += 1
        if outcome in ("leaked", "failed"):
            failures.append(f"{name}: {shown}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        **outcomes,
        "failures": failures,
        "slowest_s": round(slowest, 2),
        "peak_GiB": round(peak, 2),
    }


def _leaked(message: str, content: bytes) -> str | None:
    """A canary or something a terminal obeys in a message.

    A damaged header may run into the first row; its cells are then column names to any program. They may be
    named where a column that was asked for is among them.
    """
    if any(letter in message for letter in OBEYED):
        return "an escape"
    if message.startswith("the bounds of column"):  # whose names are public
        return None
    first = content.lstrip(b"\r\n").splitlines()[:1]
    header = first[0].decode(errors="replace") if first else ""
    if any(word in header for word in ("id", "left", "right", "unique_id", "column")):
        message = message.replace(header, "")
        listed = message.partition("its columns are: ")[2].rpartition(". Name")[0].split(", ")
        cells = [*header.replace(";", ",").replace("\t", ",").split(","), *listed]
        for cell in (cell.strip().strip('"') for cell in cells):
            known = cell.rstrip("…")[:20] in header
            message = message.replace(cell, "") if len(cell) > 2 and known else message
    return next((canary for canary in CANARIES if canary in message), None)


def sample(folder: Path, count: str, seed: str) -> Iterator[Any]:
    """A few of everything."""
    for layout in seeds():
        yield from damaged_files(folder, layout, count, seed)
    yield from forged_releases(folder, count, seed)
    yield from forged_ledgers(folder, count, seed)


def damaged_files(folder: Path, layout: str, count: str, seed: str) -> Iterator[Any]:
    """Files of one layout."""
    rng = random.Random(f"{layout} {seed}")
    known = seeds()
    name, whole = known[layout]
    others = [content for _, content in known.values()]
    path = folder / name
    for number in range(int(count)):
        content = whole if number == 0 else damaged(whole, rng, others)
        path.write_bytes(content)
        yield f"{layout} {number} of seed {seed}", content, lambda: read(layout, path)


def read(layout: str, path: Path) -> None:
    """Read one file the way its layout is read, and go on to the graph."""
    if layout.startswith("bounds"):
        PublicBounds.read(path)
    elif layout.startswith(("features", "sparse")):
        read_features(path)
    else:
        zero = "dissimilar" if file_suffix(path) in (".csv", ".parquet") else None
        for chosen in ("auto", layout.split(".")[0]):
            kappa(index_pairs(read_pairs(path, layout=chosen, zero_means=zero)).pairs)


def certified() -> ReleasedMetric:
    """A small release."""
    certificate = Certificate.issue(
        [GaussianEvent(40.0, steps=100), GaussianEvent(30.0, 0.1, 50)],
        delta=1e-5,
        unit="relationship",
        adjacency="zero-out",
        kappas={"pair": 1, "relationship": 1, "person": 2},
        mechanism="gaussian",
        n_pairs_given=900,
        n_pairs_used=500,
        selection={"how": "paths", "caveat": "a caveat", "full_graph_relationship_kappa": 13},
        noise_source=TrustedNoise().name,
        for_release=True,
        delta_slack=1e-12,
        plan={"n_features": 3, "releases": []},
    )
    L = np.random.default_rng(0).normal(size=(2, 3))
    return ReleasedMetric(L, certificate, ("age", "height", "weight"), np.array([0.1, 1.0, 2.0]))


SUMMARY = {
    "format": "pairveil-summary",
    "version": 1,
    "title": "Patients",
    "used": {
        "n_people": 4, "n_pairs": 3,
        "kappa": {"pair": 1, "relationship": 1, "paper_bound": 2, "person": 2, "intransitive": 1},
        "degrees": [[1, 2], [2, 2]], "b": [[1, 4]], "top": [{"rank": 1, "b": 1, "degree": 2}],
    },
    "given": None,
    "points": {
        "source": "public", "note": "n", "before": [[0, 0], [1, 1]], "after": [[0, 0], [2, 1]],
        "groups": ["a", "b"],
    },
    "budget": {
        "epsilon": 2.0, "delta": 1e-5, "unit": "relationship", "adjacency": "zero-out",
        "entries": [{"note": "fit", "epsilon_so_far": 1.0, "when": "today"}],
    },
}  # fmt: skip


def forged_releases(folder: Path, count: str, seed: str) -> Iterator[Any]:
    """Release folders with one forged file each; the digest in the certificate is made to fit."""
    rng = random.Random(f"releases {seed}")
    whole = certified().save(folder / "whole", summary=json.dumps(SUMMARY))
    certificate = json.loads((whole / "certificate.json").read_text())
    blob = (whole / "metric.safetensors").read_bytes()
    for number in range(int(count)):
        target = folder / "forged"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(whole, target)
        kind = ("certificate", "summary", "header", "bytes", "pipe")[
            number % 20 % 5 if number % 20 else 4
        ]
        if kind == "certificate":
            (target / "certificate.json").write_text(as_text(forged(certificate, rng)))
        elif kind == "summary":
            (target / "summary.json").write_text(as_text(forged(SUMMARY, rng)))
        elif kind == "pipe" and number % 20 == 0:
            file = target / rng.choice(("certificate.json", "summary.json", "metric.safetensors"))
            file.unlink()
            os.mkfifo(file)
        else:
            metric = _forged_blob(blob, rng) if kind == "header" else damaged(blob, rng, [blob])
            (target / "metric.safetensors").write_bytes(metric)
            fitting = certificate | {"metric_sha256": hashlib.sha256(metric).hexdigest()}
            (target / "certificate.json").write_text(json.dumps(fitting))
        yield (
            f"release {number} ({kind}) of seed {seed}",
            b"",
            lambda target=target: look_at(target),
        )


def _forged_blob(blob: bytes, rng: random.Random) -> bytes:
    size = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8 : 8 + size])
    if rng.random() < 0.5:
        names = forged({"n": ["age", "height", "weight"]}, rng).get("n", "x")
        header["__metadata__"]["feature_names"] = as_text(names)
        made = header
    else:
        made = forged(header, rng)
    text = as_text(made).encode("utf-8", "surrogatepass")
    tail = np.frombuffer(blob[8 + size :], dtype=np.float64).copy()
    if rng.random() < 0.3:
        tail[rng.randrange(len(tail))] = rng.choice((np.nan, np.inf, -1.0, 1e300, 5e-324, 0.0))
    return len(text).to_bytes(8, "little") + text + tail.tobytes()


def look_at(folder: Path) -> None:
    """All that a receiver does with a release."""
    metric = ReleasedMetric.load(folder)
    if metric.certificate is not None:
        shown = metric.certificate.promise() + str(metric.certificate.verify().problems)
        assert not any(letter in shown for letter in OBEYED), "an escape in the promise"
    page = render(read_release(folder))
    assert not any(letter in page for letter in OBEYED), "an escape in the page"
    page.encode()
    to_csv(metric, folder / "metric.csv")
    metric.transform(np.ones((2, metric.n_features)))


def forged_ledgers(folder: Path, count: str, seed: str) -> Iterator[Any]:
    """Ledger files with forged values and a checksum that fits."""
    rng = random.Random(f"ledgers {seed}")
    path = folder / "ledger.json"
    ledger = PrivacyLedger(epsilon=3.0, delta=1e-5, path=path)
    for number in range(3):
        kappas = {"pair": 1, "relationship": 1, "person": 2}
        ledger.spend([GaussianEvent(60.0, steps=100)], kappas, note=f"fit {number}", graph="g")
    body = {key: value for key, value in json.loads(path.read_text()).items() if key != "sha256"}
    for number in range(int(count)):
        made = forged(body, rng)
        text = as_text(made)
        if text.startswith("{") and len(text) < 100_000:
            canonical = json.dumps(made, sort_keys=True, separators=(",", ":"))
            digest = hashlib.sha256(canonical.encode()).hexdigest()
            text = text[:-1] + f', "sha256": "{digest}"}}'
        content = damaged(text.encode(), rng, [b"{}"]) if number % 5 == 0 else text.encode()
        path.write_bytes(content)
        yield f"ledger {number} of seed {seed}", b"", lambda: _spent(path)


def _spent(path: Path) -> None:
    ledger = PrivacyLedger.open(path)
    assert ledger.spent() >= 0.0
    assert not any(letter in repr(ledger) for letter in OBEYED)


if __name__ == "__main__":
    main(sys.argv[1:])
