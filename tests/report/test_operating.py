"""Pages of linkage models and operating points: from the commands, in a browser's eyes and on bad input."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from pairveil import ErrorCurve, InputError, error_curve
from pairveil.cli.app import app
from pairveil.linkage import PrivateLinkageModel, ReleasedLinkage
from pairveil.release.curve import operating_points
from pairveil.report.facts import read_release, weight_rows, with_curve
from pairveil.report.page import render

N = 3000
Y = np.repeat([1, -1], N)
PEOPLE = np.arange(4 * N).reshape(-1, 2)


def _curve(seed: int | None = 0, epsilon: float = 1.0) -> ErrorCurve:
    rng = np.random.default_rng(0)
    scores = np.clip(rng.normal(np.where(Y > 0, 0.7, 0.3), 0.1), 0, 1)
    return error_curve(scores, Y, PEOPLE, epsilon, 1e-5, (0, 1), n_cells=32, random_state=seed)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory):
    """A linkage model and an operating point, both for release."""
    folder = tmp_path_factory.mktemp("releases")
    levels = np.where(
        np.random.default_rng(1).random((2 * N, 2)) < 0.9, Y[:, None] > 0, Y[:, None] < 0
    )
    model = PrivateLinkageModel(epsilon=1.0).fit(levels.astype(int), Y, PEOPLE, [2, 2])
    model.release(folder / "linkage")
    replace(_curve(None), asked=0.05).save(folder / "point")
    return folder  # fmt: skip


def test_a_curve_comes_back_as_it_was_saved(folders) -> None:
    found = ErrorCurve.load(folders / "point")
    again = found.save(folders / "again")
    assert json.loads((again / "error_curve.json").read_text()) == json.loads(
        (folders / "point" / "error_curve.json").read_text()
    )
    assert found.certificate.verify().problems == ()
    assert found.threshold(fmr=0.1) < found.threshold(fmr=0.05)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("confidence", 2.0),
        ("count_noise", -1.0),
        ("points", []),
        ("points", [{"threshold": 0.0}]),
        ("score_range", [1, 0]),
        ("asked", 7.0),
        ("of_distance", "no"),
        ("version", 2),
        ("format", "x"),
    ],
)
def test_a_damaged_curve_is_refused(folders, tmp_path, field, value) -> None:
    _curve().save(tmp_path / "point")
    file = tmp_path / "point" / "error_curve.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    with pytest.raises(InputError, match=r"error_curve\.json"):
        ErrorCurve.load(tmp_path / "point")


def test_a_curve_that_was_changed_is_refused(tmp_path) -> None:
    _curve().save(tmp_path / "point")
    file = tmp_path / "point" / "error_curve.json"
    content = json.loads(file.read_text())
    content["points"][3]["fmr_high"] *= 0.5
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="SHA-256 differs"):
        ErrorCurve.load(tmp_path / "point")


def test_the_page_of_an_operating_point(folders) -> None:
    data = read_release(folders / "point")
    page = render(data)
    at = operating_points(data.curve, ())[0].threshold
    for words in ("An operating point", f"score is at least {at:.6g}", "ErrorCurve.load", "DET curve",
                  "SHA-256 of error_curve.json", "any other false-match rate"):  # fmt: skip
        assert words.replace("'", "&#39;") in page, words
    assert "metric.safetensors" not in page
    assert "What the metric does" not in page
    with pytest.raises(InputError, match="operating point itself"):
        with_curve(data, folders / "point")


def test_the_page_of_a_linkage_model_and_its_threshold(folders) -> None:
    alone = render(read_release(folders / "linkage"))
    assert "Waterfall" in alone
    assert "agrees best" in alone
    assert "The operating point" not in alone
    assert "ReleasedLinkage.load" in alone
    assert "SHA-256 of linkage.json" in alone
    both = with_curve(read_release(folders / "linkage"), folders / "point")
    page = render(both)
    assert both.together.epsilon > max(both.certificate.epsilon, both.curve.certificate.epsilon)
    assert "The operating point" in page
    assert "Model and curve together cost epsilon" in page


def test_the_commands(folders) -> None:
    words = ["report", str(folders / "linkage"), "--threshold", str(folders / "point"), "--json"]
    done = CliRunner().invoke(app, [*words, "-o", str(folders / "both.html")])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["valid"] is True
    checked = CliRunner().invoke(app, ["certificate", str(folders / "point"), "--json"])
    assert json.loads(checked.stdout)["valid"] is True
    wrong = CliRunner().invoke(app, [*words[:3], str(folders / "linkage")])
    assert "holds no error curve" in str(wrong.exception)


def test_noise_on_weights_is_what_repeated_fits_show() -> None:
    """The standard deviation of 40 fits is within 40 % of the one stated (seeded)."""
    levels = np.where(
        np.random.default_rng(1).random((2 * N, 1)) < 0.9, Y[:, None] > 0, Y[:, None] < 0
    )
    found, stated = [], []
    for seed in range(40):
        model = PrivateLinkageModel(epsilon=0.1, random_state=seed)
        rows = weight_rows(model.fit(levels.astype(int), Y, PEOPLE, [2]).released())
        found.append([row.bits for row in rows])
        stated.append([row.noise for row in rows])
    ratio = np.std(found, axis=0) / np.mean(stated, axis=0)
    assert (np.abs(ratio - 1) < 0.4).all()


def test_noise_is_not_stated_where_it_is_not_known() -> None:
    tables = ((np.array([0.2, 0.8]),), (np.array([0.9, 0.1]),), 0.5)
    assert [row.noise for row in weight_rows(ReleasedLinkage(*tables))] == [None, None]


def test_a_wide_band_says_how_many_pairs_would_do() -> None:
    wide = _curve(epsilon=0.3)
    assert "The band is wide" in wide.advice(0.05)
    needed = wide.pairs_for_band(0.05)
    assert needed > N
    # With so many pairs, of the same kind and at the same noise, the band is as narrow as was said.
    y, people = np.repeat([1, -1], [1, needed]), np.arange(2 * needed + 2).reshape(-1, 2)
    scores = np.clip(np.random.default_rng(2).normal(np.where(y > 0, 0.7, 0.3), 0.1), 0, 1)
    curve = error_curve(scores, y, people, 0.3, 1e-5, (0, 1), n_cells=32, random_state=0)
    end = (
        curve.fmr_high[np.argmin(np.abs(curve.fmr - 0.05))]
        / curve.fmr[np.argmin(np.abs(curve.fmr - 0.05))]
    )
    assert 1.5 < end < 2.2
    assert curve.advice(0.3) == ""


def test_pictures_hold_the_curve_inside_its_band() -> None:
    mpl = pytest.importorskip("matplotlib")
    mpl.use("Agg")
    from matplotlib.path import Path as Outline

    curve = _curve()
    for kind in ("det", "roc"):
        axes = curve.plot(kind)
        line, band = axes.lines[0].get_xydata(), Outline(axes.patches[0].get_xy())
        # On the edge counts: rates of 0 and 1 lie there. Which sign of the radius widens depends on the path.
        held = [band.contains_points(line, radius=sign * 1e-6) for sign in (-1, 1)]
        assert (held[0] | held[1]).all()
    with pytest.raises(InputError, match="kind must be"):
        curve.plot("x")
