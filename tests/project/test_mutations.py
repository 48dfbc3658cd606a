"""The table of planted errors is up to date: `make mutants` plants each of them, every night."""

from __future__ import annotations

import pytest
from tools.mutants import ROOT, checking, holding
from tools.mutations import MUTATIONS


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_planted_error_has_one_place_and_tests_that_must_notice(mutation):
    source = holding(mutation).read_text()
    assert checking(mutation)
    compile(source.replace(mutation.snippet, mutation.becomes), mutation.name, "exec")
    assert mutation.snippet != mutation.becomes


def test_mutations_have_names_of_their_own():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 30
    assert (ROOT / "pyproject.toml").exists()
