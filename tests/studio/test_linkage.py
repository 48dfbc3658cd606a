"""Record linkage in the studio: two tables to a linkage model with its report, charged once."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from studio_tools import enter, open_client, shown_on, step, upload, wait_until_done

from pairveil.linkage import make_records, text_levels
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.release.linkage import ReleasedLinkage
from pairveil.studio.project import Project

COLUMNS = {"learns_from": "levels", "left": "left", "right": "right", "label": "said"}


@pytest.fixture
def clerks(tmp_path: Path) -> tuple[Path, Path, list[str]]:
    """Levels of reviewed pairs of made-up records, the clerks' labels with one slip, and the comparisons."""
    records = make_records(300, errors=0.25, random_state=7)
    pairs = records.path()
    sides = [[[column[i] for i in side] for side in pairs.T] for column in records.columns.values()]
    levels = np.column_stack([text_levels(*each) for each in sides])
    ids, same = np.array(records.ids)[pairs].tolist(), records.labels(pairs) > 0
    found = tmp_path / "levels.csv", tmp_path / "labels.csv"
    words = ["same" if one else "different" for one in same]
    rows = (
        [
            ["left", "right", *records.columns],
            *([*p, *r] for p, r in zip(ids, levels.tolist(), strict=True)),
        ],
        [
            ["left", "right", "said"],
            *([*p, w] for p, w in zip(ids, ["perhaps", *words[1:]], strict=True)),
        ],
    )
    for file, content in zip(found, rows, strict=True):
        with file.open("w", newline="", encoding="utf-8") as opened:
            csv.writer(opened).writerows(content)
    return *found, list(records.columns)


def test_from_levels_and_labels_to_a_linkage_model(clerks, tmp_path: Path) -> None:
    levels, labels, names = clerks
    project = Project(tmp_path / "studio", budget=5.0)
    with open_client(project) as client:
        enter(client)
        assert upload(client, "levels", levels)["columns"] == ["left", "right", *names]
        assert upload(client, "pairs", labels)["chosen"]["label"] == "said"
        apart = client.post("/files", data=COLUMNS | {"left": "said"})
        assert apart.status_code == 400
        page = client.post("/files", data=COLUMNS)
        assert step(page) == "plan", page.text
        assert "1 label cannot be read" in page.text
        assert step(client.get("/schema")) == "plan"
        assert ">Columns<" not in page.text  # there is nothing to say of columns
        choice = {"epsilon": "2.0", "unit": "relationship", "title": "Clerks", "prior": "0.01"}
        for wrong in ("", "1", "x"):
            refused = client.post("/plan", data=choice | {"levels-0": wrong})
            assert refused.status_code == 400
            assert "how many levels" in refused.text
        sizes = {f"levels-{at}": "4" for at in range(len(names))}
        assert client.post("/plan", data=choice | sizes | {"prior": "2"}).status_code == 400
        page = client.post("/plan", data=choice | sizes)
        assert step(page) == "confirm", page.text
        assert not project.ledger.exists()
        page = client.post("/confirm", data={"read": "yes", "shown": shown_on(page.text)})
        assert wait_until_done(client)["state"] == "done", project.folder
        page = client.get("/done").text
        assert "a linkage model" in page
        assert "error rates at each threshold are one more release, from labelled pairs" in page
        assert "The guide to record linkage says how" in page
        assert "Clerks" in client.get("/report").text
    found = ReleasedLinkage.load(project.release)
    assert [len(m) for m in found.m] == [4] * len(names)
    assert found.certificate.verify()
    assert found.certificate.for_release
    assert json.loads((project.release / "linkage.json").read_text())["prior"] == 0.01
    assert len(PrivacyLedger.open(project.ledger).entries) == 1
    assert not list(project.folder.glob("levels.*"))
    assert not project.checkpoint.exists()


def test_what_is_wrong_is_one_list_before_levels_are_described(clerks, tmp_path: Path) -> None:
    levels, labels, names = clerks
    rows = levels.read_text().splitlines()
    first = rows[1].split(",")
    rows[4] = ",".join([*rows[4].split(",")[:2], "kanarienvogel", *rows[4].split(",")[3:]])
    rows[5] = ",".join([*rows[5].split(",")[:2], "9", *rows[5].split(",")[3:]])
    levels.write_text("\n".join([*rows, ",".join([first[1], first[0], *first[2:]])]) + "\n")
    with labels.open("a") as file:
        file.write(f"{first[0]},{first[0]},same\nkanarienvogel,{first[0]},same\n")
    project = Project(tmp_path / "studio", budget=5.0)
    with open_client(project) as client:
        enter(client)
        upload(client, "levels", levels)
        upload(client, "pairs", labels)
        refused = client.post("/files", data=COLUMNS)
        assert refused.status_code == 400
        for part in (
            "1 row of the levels repeats a pair", "1 cell cannot be read (row 4)", "1 label cannot be read",
            "1 pair joins a person with herself", "has no levels",
        ):  # fmt: skip
            assert part in refused.text, refused.text
        assert "kanarienvogel" not in refused.text
        assert "--" not in refused.text.partition("<main")[2].partition("</main>")[0].replace(
            "<!--", ""
        )
        page = client.post("/files", data=COLUMNS | {"leave_out": "yes"})
        assert step(page) == "plan", page.text
        assert "1 cell holds no whole number" in page.text
        sizes = {f"levels-{at}": "4" for at in range(len(names))}
        choice = {"epsilon": "2.0", "unit": "relationship", "prior": "0.01"}
        page = client.post("/plan", data=choice | sizes)
        assert step(page) == "confirm", page.text
        assert "2 cells hold no whole number from -1 to 3" in page.text  # what the levels showed
        listed = client.get("/problems.csv").text
        assert "levels,cell,name,4" in listed
        assert "levels,cell,name,5" in listed  # no level of four
        client.post("/confirm", data={"read": "yes", "shown": shown_on(page.text)})
        assert wait_until_done(client)["state"] == "done", project.folder
    assert ReleasedLinkage.load(project.release).certificate.verify()
    assert not project.problems.exists()
