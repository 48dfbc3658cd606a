"""Whole files of every layout, with canaries in the places of private values."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

IDS = ["zqann71", "zqbob72", "zqcid73", "zqdan74", "zqeve75", "zqfay76"]
ENDS = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 2)]
AGES = [8317.25, 9461.75, 6151.5, 8317.5, 9461.25, 6151.25]
CANARIES = ("zqann", "zqbob", "zqcid", "zqdan", "zqeve", "zqfay", "8317", "9461", "6151", "zqrec")


def seeds() -> dict[str, tuple[str, bytes]]:
    """From layout to the file's name and its bytes."""
    left, right = [IDS[a] for a, _ in ENDS], [IDS[b] for _, b in ENDS]
    words = ["same" if i % 2 else "different" for i in range(len(ENDS))]
    rows = list(zip(left, right, words, strict=True))
    scores = [0.9 if word == "same" else 0.2 for word in words]
    people = "".join(f"{i},{a},{n}\n" for n, (i, a) in enumerate(zip(IDS, AGES, strict=True)))
    links = {
        "must_link": [[a, b] for a, b, w in rows if w == "same"],
        "cannot_link": [[a, b] for a, b, w in rows if w != "same"],
    }
    dedupe = {
        key: [[{"id": a, "name": "zqrec"}, {"id": b}] for a, b, w in rows if w == word]
        for key, word in (("match", "same"), ("distinct", "different"))
    }
    files = {
        "table.csv": ("p.csv", _csv("left,right,label", rows)),
        "table.tsv": ("p.tsv", _csv("left,right,label", rows).replace(b",", b"\t")),
        "table.parquet": ("p.parquet", _parquet({"left": left, "right": right, "label": words})),
        "splink": (
            "p.csv",
            _csv(
                "unique_id_l,unique_id_r,clerical_match_score",
                zip(left, right, scores, strict=True),
            ),
        ),
        "dedupe": ("p.json", json.dumps(dedupe).encode()),
        "lfw": (
            "p.txt",
            ("1\t3\n" + "".join(f"{a}\t1\t2\n{a}\t1\t{b}\t3\n" for a, b, _ in rows)).encode(),
        ),
        "voxceleb": (
            "p.txt",
            "".join(f"{n % 2} {a}/x.wav {b}/y.wav\n" for n, (a, b, _) in enumerate(rows)).encode(),
        ),
        "links.txt": ("p.txt", "".join(f"must-link {a} {b}\n" for a, b, _ in rows).encode()),
        "links.json": ("p.json", json.dumps(links).encode()),
        "features.csv": ("f.csv", ("id,age,dose\n" + people).encode()),
        "features.parquet": ("f.parquet", _parquet({"id": IDS, "age": AGES, "dose": [1.0] * 6})),
        "features.npy": ("f.npy", _saved(lambda file: np.save(file, np.array([AGES, AGES]).T))),
        "features.npz": (
            "f.npz",
            _saved(lambda file: np.savez(file, X=np.array([AGES, AGES]).T, ids=np.array(IDS))),
        ),
        "sparse.npz": ("f.npz", _sparse()),
        "bounds.csv": ("b.csv", b"column,lower,upper\nage,0,120\ndose,0,6151\n"),
        "bounds.json": ("b.json", b'{"age": [0, 120], "dose": [0, 6151]}'),
    }
    return files


def _csv(header: str, rows: object) -> bytes:
    lines = [",".join(map(str, row)) for row in rows]  # type: ignore[attr-defined]
    return "\n".join([header, *lines, ""]).encode()


def _parquet(columns: dict[str, list[object]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())


def _saved(save: object) -> bytes:
    file = io.BytesIO()
    save(file)  # type: ignore[operator]
    return file.getvalue()


def _sparse() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.npz"
        sparse.save_npz(path, sparse.csr_array(np.diag(AGES)))
        return path.read_bytes()
