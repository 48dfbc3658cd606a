"""One fit, many canaries: an honest learner is left alone, a broken one is found in a single run."""

from __future__ import annotations

import pytest
from one_fit import audit_one_fit

from pairveil.audit.attack import patients
from pairveil.errors import InputError
from pairveil.privacy.noise import SeededNoise


class NoiseTooSmall(SeededNoise):
    """A twentieth of the noise that the plan names."""

    def noisy(self, family, total, scale, grid=None):
        return super().noisy(family, total, scale / 20, grid)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_an_honest_fit_is_not_accused(epsilon, adjacency):
    found = audit_one_fit(
        patients().all, epsilon, adjacency=adjacency, n_steps=12, confidence=0.999
    )
    assert found.verdict == "consistent"
    assert found.n_runs == 1


def test_much_too_little_noise_is_found_in_one_fit():
    """At 0.999 one fit must show nearly all of 30 guesses right; 13 of the first 30 seeds do."""
    found = audit_one_fit(
        patients().all, 1.0, n_canaries=100, n_steps=12, share=0.3, noise=NoiseTooSmall
    )
    assert found.verdict == "violated"


def test_a_bound_a_little_above_the_claim_accuses_nobody(monkeypatch):
    """One rule for every audit: 0.999 for an accusation, whatever the confidence of the bound."""
    import one_fit

    monkeypatch.setattr(
        one_fit, "epsilon_one_run_gaussian", lambda *seen: 1.2 if seen[-1] < 0.999 else 0.8
    )
    found = audit_one_fit(patients().all, 1.0, n_canaries=20, n_steps=1)
    assert found.lower_bound == 1.2
    assert found.verdict == "consistent"


def test_a_run_without_canaries_is_refused():
    with pytest.raises(InputError, match="ten canaries"):
        audit_one_fit(patients().all, 1.0, n_canaries=3)
