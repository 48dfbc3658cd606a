# ruff: noqa: E501
"""A stranger's release: each forgery ends in one sentence, soon, and shows nothing that a terminal obeys."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from msgspec import Struct
from safetensors.numpy import save

from pairveil.errors import InputError
from pairveil.foreign import decode, parse_json, read_regular
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.compose import MAX_DISTINCT
from pairveil.privacy.events import ChoiceEvent, GaussianEvent, LaplaceEvent, event_from_dict
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.noise import TrustedNoise
from pairveil.privacy.profile import best_guess_of, epsilon_of
from pairveil.release.metric import ReleasedMetric
from pairveil.report.data import ProjectedPoints, Summary
from pairveil.report.facts import MAX_LISTED, read_release
from pairveil.report.page import render

DEEP = "[" * 200_000 + "]" * 200_000


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return Certificate.issue(
        [GaussianEvent(40.0, steps=100)],
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
    )


@pytest.fixture
def folder(certificate: Certificate, tmp_path: Path) -> Path:
    metric = ReleasedMetric(np.eye(2, 3), certificate, ("age", "bmi", "dose"))
    return metric.save(tmp_path / "release")


def forge(folder: Path, tensors: dict[str, np.ndarray], **metadata: str) -> None:
    """Another metric in the folder, with the certificate's digest made to fit."""
    blob = save(tensors, metadata={"format": "pairveil-metric", "version": "1", **metadata})
    (folder / "metric.safetensors").write_bytes(blob)
    file = folder / "certificate.json"
    data = json.loads(file.read_text()) | {"metric_sha256": hashlib.sha256(blob).hexdigest()}
    file.write_text(json.dumps(data))


@pytest.mark.parametrize(
    "names",
    [
        "5",
        '{"a": 1}',
        "[1, 2, 3]",
        '["a", "b", null]',
        '["a", "b", "\\ud800"]',
        "[",
        DEEP,
        '"abc"',
        "x",
    ],
)
def test_feature_names_must_be_a_list_of_texts(folder: Path, names: str) -> None:
    forge(folder, {"components": np.eye(2, 3)}, feature_names=names)
    with pytest.raises(InputError, match="feature name"):
        ReleasedMetric.load(folder)


@pytest.mark.parametrize(
    "scale",
    [np.ones(2), np.ones((3, 1)), np.array([1.0, np.nan, 1.0]), np.array([1.0, -1.0, 1.0]), np.full(3, np.inf)],
)  # fmt: skip
def test_column_scale_must_be_a_number_a_column(folder: Path, scale: np.ndarray) -> None:
    forge(folder, {"components": np.eye(2, 3), "column_scale": scale}, feature_names="")
    with pytest.raises(InputError, match="column_scale must be"):
        ReleasedMetric.load(folder)


@pytest.mark.parametrize("file", ["certificate.json", "metric.safetensors", "summary.json"])
def test_a_pipe_is_refused_at_once(folder: Path, file: str) -> None:
    (folder / file).unlink(missing_ok=True)
    os.mkfifo(folder / file)
    with pytest.raises(InputError, match="not a regular file"):
        read_release(folder)


FORGED = {
    "selection": "paths", "plan": 5, "events": "gaussian", "kappas": [1, 2], "epsilons": {"pair": 1.0}, "public": 7,
    "versions": [], "noise_source": 1, "epsilon": [1], "delta": "x", "unit": ["pair"], "metric_sha256": 5,
}  # fmt: skip


@pytest.mark.parametrize("field", FORGED)
def test_a_field_of_a_wrong_kind_is_named(certificate: Certificate, field: str) -> None:
    data = certificate.to_dict() | {field: FORGED[field]}
    with pytest.raises(InputError, match=f"'{field}' must be"):
        Certificate.from_json(json.dumps(data))


@pytest.mark.parametrize("kappa", [10**400, 10**30, 2**60])
def test_a_kappa_beyond_all_pairs_is_refused(certificate: Certificate, kappa: int) -> None:
    kappas = dict.fromkeys(("pair", "relationship", "person"), kappa)
    data = certificate.to_dict() | {"kappa": kappa, "kappas": kappas}
    with pytest.raises(InputError, match=r"too many digits|at most 2"):
        Certificate.from_json(json.dumps(data)).verify()


@pytest.mark.parametrize("noise", [1e-300, 5e-324, 1e-30])
def test_noise_that_is_none_gives_no_epsilon(certificate: Certificate, noise: float) -> None:
    for rate in (1.0, 0.5):
        event = {"kind": "gaussian", "noise_multiplier": noise, "sample_rate": rate, "steps": 10}
        forged = Certificate.from_json(json.dumps(certificate.to_dict() | {"events": [event]}))
        assert not forged.verify()
        assert epsilon_of([GaussianEvent(noise, rate)], kappa=1, delta=1e-5) > 1e20
    assert epsilon_of([LaplaceEvent(noise)], kappa=1, delta=0.0) > 1e20


def test_more_noise_than_a_float_squares_is_still_not_pure() -> None:
    assert epsilon_of([GaussianEvent(1e300)], kappa=1, delta=0.0) == np.inf


@pytest.mark.parametrize("text", [DEEP, '{"a":' * 200_000, "[" * 10**6])
def test_deep_json_is_refused_everywhere(text: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(text)
    for read in (Certificate.from_json, Summary.from_json, lambda _: PrivacyLedger.open(path)):
        with pytest.raises(InputError, match="nested more than 32 deep"):
            read(text)


def test_brackets_inside_text_are_no_depth() -> None:
    text = json.dumps({"note": "[" * 1000 + '\\"' + "{" * 1000})
    assert parse_json(text, "it") == json.loads(text)


def test_large_json_and_odd_numbers_are_refused() -> None:
    for text, said in [("[" + "1," * 10**7, "larger than"), ("[NaN]", "not finite"), ("[1e999]", "not finite"),
                       ("[" + "9" * 30 + "]", "too many digits"), (b"\xff", "not UTF-8")]:  # fmt: skip
        with pytest.raises(InputError, match=said):
            parse_json(text, "it")


class Stored(Struct, forbid_unknown_fields=True):
    a: list[int]
    b: str | None
    c: dict[str, float]


def test_kinds_of_fields() -> None:
    good = {"a": [1], "b": None, "c": {"x": 2}}
    assert decode(good, Stored, "it").c == {"x": 2.0}
    changes = (
        {"a": [True]},
        {"a": 1},
        {"b": 1},
        {"c": {"x": "y"}},
        {"c": []},
        {"a": [1.0]},
        {"c": {"x": True}},
    )
    for wrong in changes:
        with pytest.raises(InputError, match=r"it is not valid: '[abc]' must be"):
            decode(good | wrong, Stored, "it")


def test_no_field_may_be_missing_or_unknown_and_none_of_a_stranger_is_repeated() -> None:
    with pytest.raises(InputError, match=r"^it is not valid: 'b' is missing$"):
        decode({"a": [], "c": {}}, Stored, "it")
    for wrong in ({"\x1b[2J": 1}, {"d": 2}):
        with pytest.raises(
            InputError, match=r"^it is not valid: it has a field that is not known$"
        ):
            decode({"a": [], "b": None, "c": {}} | wrong, Stored, "it")
    with pytest.raises(
        InputError, match=r"^it is not valid: it must be one of the values that are known$"
    ):
        decode(["\x1b[2J"], list[Literal["x"]], "it")
    for wrong in ({"\ud800": 1}, {"kind": "\ud800"}):
        with pytest.raises(InputError, match=r"is not valid: "):
            event_from_dict(wrong)
    for wrong in (None, 5, "text", 10**400):
        with pytest.raises(InputError, match=r"^it must be a JSON object$"):
            decode(wrong, Stored, "it")


def test_a_ledger_of_wrong_kinds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    PrivacyLedger(1.0, 1e-5, path=path)
    whole = json.loads(path.read_text())
    for change in (
        {"budget": "x"},
        {"budget": {}},
        {"budget": whole["budget"] | {"epsilon": "inf"}},
        {"entries": 5},
        {"entries": ["x"]},
        {"entries": [{"events": 1}]},
    ):
        body = {k: v for k, v in (whole | change).items() if k != "sha256"}
        canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
        path.write_text(
            json.dumps(body | {"sha256": hashlib.sha256(canonical.encode()).hexdigest()})
        )
        with pytest.raises(InputError, match="ledger"):
            PrivacyLedger.open(path)


def test_a_pipe_is_no_ledger(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ledger.json")
    with pytest.raises(InputError, match="not a regular file"):
        PrivacyLedger.open(tmp_path / "ledger.json")


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "big.json").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match="larger than 16 MiB"):
        read_regular(tmp_path / "big.json")


# ---- thousands of distinct events ----------------------------------------------------------------


def test_the_work_of_many_distinct_events_is_bounded() -> None:
    events = [GaussianEvent(20 + 0.01 * i, 0.05 + 1e-5 * i, 10) for i in range(3000)]
    start = time.process_time()
    bounded = epsilon_of(events, kappa=1, delta=1e-5)
    assert time.process_time() - start < 10
    # Sound: the exact composition of as many events as are composed, and more, costs less.
    assert bounded > epsilon_of(events[:MAX_DISTINCT], kappa=1, delta=1e-5)
    laplace = [LaplaceEvent(200 + 0.01 * i, 10) for i in range(3000)]
    start = time.process_time()
    added = epsilon_of([*laplace, GaussianEvent(40.0)], kappa=1, delta=1e-5)
    assert time.process_time() - start < 10
    assert added > epsilon_of(laplace[:MAX_DISTINCT], kappa=1, delta=1e-5)


def test_events_beyond_the_limit_only_raise_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    from pairveil.privacy import compose as composition
    from pairveil.privacy import profile as accounting

    events = [GaussianEvent(20.0 + i, 0.05, 10) for i in range(6)]
    pure = [LaplaceEvent(50.0 + i, 2) for i in range(6)]
    exact = [epsilon_of(e, kappa=2, delta=1e-5) for e in (events, [*pure, *events])]
    accounting.epsilon_of_composition.cache_clear()
    monkeypatch.setattr(composition, "MAX_DISTINCT", 3)
    looser = [epsilon_of(e, kappa=2, delta=1e-5) for e in (events, [*pure, *events])]
    monkeypatch.undo()
    accounting.epsilon_of_composition.cache_clear()
    closed = [
        epsilon_of(
            [GaussianEvent(e.noise_multiplier, 1.0, 10) for e in events], kappa=2, delta=1e-5
        )
    ]
    assert exact[0] < looser[0] < closed[0]
    assert exact[1] < looser[1]


def test_the_profile_counts_events_beyond_the_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplace events and choices that are left off the grid shift the profile, they never leave it."""
    from pairveil.privacy import compose as composition
    from pairveil.privacy.profile import delta_of

    pure = [LaplaceEvent(50.0 + i, 2) for i in range(6)]
    choices = [ChoiceEvent(0.02 + 0.001 * i, 2) for i in range(6)]
    for events in (pure, choices, [*pure, GaussianEvent(20.0, 0.5, 10)]):
        points = (0.0, 0.01, 0.1, 0.3)
        exact = [delta_of(events, epsilon=e, kappa=2) for e in points]
        epsilon = epsilon_of(events, kappa=2, delta=1e-5)
        with monkeypatch.context() as patched:
            patched.setattr(composition, "MAX_DISTINCT", 3)
            looser = [delta_of(events, epsilon=e, kappa=2) for e in points]
            assert epsilon_of(events, kappa=2, delta=1e-5) >= epsilon
        assert all(a <= b for a, b in zip(exact, looser, strict=True))
        assert looser[0] > exact[0]
        assert looser[0] < 0.5


def test_a_release_of_many_distinct_events_is_judged_in_bounded_time() -> None:
    kinds = (
        lambda i: GaussianEvent(20 + 0.01 * i, 0.05 + 1e-5 * i, 10),
        lambda i: ChoiceEvent(1e-3 + 1e-6 * i, 10),
    )
    for kind in kinds:
        events = [kind(i) for i in range(3000)]
        start = time.process_time()
        assert 0 < epsilon_of(events, kappa=1, delta=1e-5) < np.inf
        assert 0.5 < best_guess_of(events, kappa=1) <= 1
        assert time.process_time() - start < 20


# ---- a wide release -------------------------------------------------------------------------------


def test_the_page_of_a_wide_metric_lists_some_features(tmp_path: Path) -> None:
    d = 20_000
    weights = np.zeros((1, d))
    weights[0, :5] = [5, 4, 3, 2, 1]
    weights[0, 5:] = 1e-3
    folder = ReleasedMetric(weights).save(tmp_path / "wide")
    data = read_release(folder)
    assert len(data.metric.weights) == MAX_LISTED
    assert sum(share for _, share in data.metric.weights) + data.metric.rest == pytest.approx(1.0)
    assert data.metric.weights[0][0] == "feature 1"
    page = render(data)
    assert len(page) < 500_000
    assert f"The other {d - 12:d} columns" in page or "columns make up" in page


def test_a_metric_of_huge_numbers_has_a_page(tmp_path: Path) -> None:
    folder = ReleasedMetric(np.array([[1e300, 1e-300]])).save(tmp_path / "huge")
    assert read_release(folder).metric.weights[0] == ("feature 1", 1.0)


def test_points_that_no_page_can_hold_are_refused() -> None:
    for far in (1e200, np.inf, np.nan):
        with pytest.raises(InputError, match="can be drawn"):
            ProjectedPoints("public", "a note", ((0.0, far),), ((0.0, 1.0),), ("a",))


# ---- what is shown --------------------------------------------------------------------------------


def test_a_caveat_cannot_speak_to_the_terminal(certificate: Certificate, folder: Path) -> None:
    data = json.loads((folder / "certificate.json").read_text())
    data["selection"]["caveat"] = "ok\x1b[2J\u202eevil\nVerified: all is well"
    (folder / "certificate.json").write_text(json.dumps(data))
    promise = ReleasedMetric.load(folder).certificate.promise()
    assert "\x1b" not in promise
    assert "\u202e" not in promise
    assert "\n" not in promise
    assert "ok?[2J?evil Verified: all is well" in promise
    page = render(read_release(folder))
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_messages_and_readmes_hold_no_control_characters(tmp_path: Path) -> None:
    assert str(InputError("column 'a\x1b[31m\u202e'")) == "column 'a?[31m?'"
    folder = ReleasedMetric(np.eye(1), None, ("a\x1b]0;x\x07",)).save(tmp_path / "release")
    assert "\x1b" not in (folder / "README.md").read_text()
