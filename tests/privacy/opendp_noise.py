"""OpenDP's exact samplers as a source of noise: the reference for ours."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import opendp.prelude as dp

from pairveil.privacy.choosing import check_choice, rate_below
from pairveil.privacy.noise import TrustedNoise, _check
from pairveil.privacy.units import TRUSTED_NOISE

dp.enable_features("contrib")


class OpendpNoise(TrustedNoise):
    """Drawn by OpenDP, which adds in unbounded integers and saturates."""

    name = TRUSTED_NOISE.format(sampler="opendp")

    def choose(self, scores, eta, unit=1):
        whole = check_choice(scores, eta, unit)
        if math.isinf(eta):
            return super().choose(scores, eta, unit)
        rate_below(eta, unit)  # refuses what our sampler refuses
        # A scale that is not too small: the quotient's rounding is undone by one step up.
        scale = math.nextafter(unit / eta, math.inf)
        return int(_choice(scale)(whole.tolist())[0])

    def _exact(self, kind, total, scale, grid):
        if grid is None or total.size == 0:
            return super()._exact(kind, total, scale, grid)
        _check(total, scale, grid)
        answer = _mechanism(kind, scale / grid)(total.ravel().tolist())
        return np.array(answer, dtype=np.int64).reshape(total.shape).astype(np.float64) * grid


@lru_cache(maxsize=64)
def _mechanism(kind, scale):
    """Noise on vectors of 64-bit integers, scale in grid steps."""
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "gaussian":
        return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=64)
def _choice(scale):
    """A choice with Gumbel noise.

    OpenDP's mechanism for pure privacy is permute-and-flip, which is not a choice of bounded range eta: the
    measure must be that of zero-concentrated privacy.
    """
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    metric, measure = dp.linf_distance(T="i64"), dp.zero_concentrated_divergence()
    return dp.m.make_noisy_top_k(domain, metric, measure, k=1, scale=scale)
