"""metric-learn's own tests, where its source is at hand: see tools/metric_learn_suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SDIST, PYTHON = (
    os.environ.get("PAIRVEIL_METRIC_LEARN"),
    os.environ.get("PAIRVEIL_METRIC_LEARN_PYTHON"),
)


@pytest.mark.skipif(
    not (SDIST and PYTHON), reason="PAIRVEIL_METRIC_LEARN(_PYTHON) name no metric-learn 0.7"
)
def test_metric_learns_own_tests_pass():
    from tools.metric_learn_suite import run

    passed, failed, text = run(Path(SDIST), PYTHON)
    assert failed == 0, text
    assert passed >= 100
