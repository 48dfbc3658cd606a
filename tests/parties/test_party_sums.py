"""What the masks hide, how much noise there is, and what the sum of discrete Gaussians costs."""

import math
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from joint import Watched, hospitals, together
from scipy.stats import chi2, norm

from pairveil.engine.backends.parties import Masks, check_room
from pairveil.engine.plan import Plan
from pairveil.engine.statistics import Statistic, clipped_sum
from pairveil.errors import InputError, PartyError
from pairveil.privacy.grid import delta_slack
from pairveil.privacy.mechanisms import Query
from pairveil.privacy.noise import PartiesNoise, SeededNoise, TrustedNoise

N_ENTRIES = 4096
GRID, SCALE = 2.0**-31, 3.0
QUERY = Query("sums", (N_ENTRIES,), 3.0, steps=4)


@dataclass(frozen=True)
class Ones(Statistic):
    """Each pair adds its label to every entry."""

    clip: float = 64.0

    @property
    def shape(self):
        return (N_ENTRIES,)

    def tile_sum(self, differences, labels, norm):
        del differences, norm
        return np.full(N_ENTRIES, float(labels.sum()))


def words_of(sent):
    """The masked sums among a party's messages."""
    found = [msgspec.msgpack.decode(one) for one in sent]
    return [np.frombuffer(one["words"], dtype="<u8") for one in found if one["kind"] == "share"]


def is_uniform(words):
    """Whether bytes look uniform: a chi-square test that fails once in 10^6 honest runs."""
    counts = np.bincount(np.ascontiguousarray(words).view(np.uint8), minlength=256)
    expected = counts.sum() / 256
    return ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 255)


def test_the_total_is_exact_and_each_message_is_uniform():
    parts = hospitals(3)
    exact = SeededNoise(0)
    silent = Query("sums", (N_ENTRIES,), 3.0, steps=2)
    found, sent = together(parts, silent, Ones(), GRID, SCALE, [exact] * 4, shares=None, rounds=2)
    whole = sum(clipped_sum(part, None, Ones(), "l2", GRID) for part in parts)
    noise = [np.rint((one - whole * GRID) / SCALE, out=None) for one in found]
    assert np.abs(noise).max() < 7  # the coordinator's noise and nothing else
    messages = [words_of(one) for one in sent]
    for one in messages:
        assert len(one) == 2
        assert is_uniform(one[0])
        assert is_uniform(one[1])
        # The same sum twice: masks that were used again would show that, or the change between two sums.
        assert is_uniform(one[0] - one[1])
    for first in (0, 1):
        total = sum(one[first] for one in messages)
        assert (total.view(np.int64) == whole).all()
    # All but one of the messages tell no more than random words do.
    for left_out in range(3):
        assert is_uniform(sum(one[0] for i, one in enumerate(messages) if i != left_out))
    assert not is_uniform(np.full(N_ENTRIES, whole[0]).view(np.uint64))  # the test can fail


@pytest.mark.parametrize("kind", ["question", "total"])
def test_parties_that_are_told_different_things_have_masks_that_do_not_cancel(kind):
    """A coordinator that lets one of them take another way, with less noise, sees random words."""

    class Told(Watched):
        def receive(self, most):
            found = msgspec.msgpack.decode(super().receive(most))
            if found["kind"] == kind == "question":
                found["scale"] *= 1 + 1e-7
            elif found["kind"] == kind:
                found["numbers"] = bytes(len(found["numbers"]))
            return msgspec.msgpack.encode(found)

    _, sent = together(
        hospitals(3), QUERY, Ones(), GRID, SCALE, [SeededNoise(i) for i in range(4)], shares=2, rounds=2,
        change=lambda i, end: Told(end) if i == 0 else end,
    )  # fmt: skip
    first, second = (sum(words_of(one)[place] for one in sent) for place in (0, 1))
    assert is_uniform(first) == (kind == "question")
    assert is_uniform(second)


def test_a_colluder_who_takes_its_masks_off_sees_the_sum_of_the_others_alone():
    keys = [X25519PrivateKey.generate() for _ in range(4)]
    roster = {f"{i}": key.public_key().public_bytes_raw() for i, key in enumerate(keys)}
    sums = [np.full(N_ENTRIES, 10**i, dtype=np.uint64) for i in range(4)]
    masks = [Masks(key, roster, f"{i}", bytes(32)).mask(0, N_ENTRIES) for i, key in enumerate(keys)]
    sent = [one + mask for one, mask in zip(sums, masks, strict=True)]
    # Party 3 gives the coordinator its key: what it shares with the others is then known.
    for honest in range(3):
        alone = {name: roster[name] for name in (f"{honest}", "3")}
        known = Masks(keys[3], alone, "3", bytes(32)).mask(0, N_ENTRIES)  # salted by another roster
        assert is_uniform(sent[honest] + known)
    others = sent[0] + sent[1] + sent[2] + masks[3]  # all masks with party 3 cancel
    assert (others == 111).all()
    for honest in range(3):
        assert is_uniform(sent[honest])
        assert is_uniform(others - sent[honest])


def test_masks_are_used_once_in_order_and_belong_to_one_fit():
    keys = [X25519PrivateKey.generate() for _ in range(2)]
    roster = {f"{i}": key.public_key().public_bytes_raw() for i, key in enumerate(keys)}
    masks = Masks(keys[0], roster, "0", bytes(32))
    first = masks.mask(0, 8)
    for number in (0, 2):
        with pytest.raises(RuntimeError, match="used once"):
            masks.mask(number, 8)
    other = Masks(keys[0], roster, "0", b"1" * 32).mask(0, 8)
    assert (first != other).all()
    assert (first != masks.mask(1, 8)).all()
    with pytest.raises(TypeError, match="used once"):
        masks.__reduce__()
    for wrong in ({"0": roster["1"], "1": roster["0"]}, {"0": roster["0"], "1": roster["0"]}):
        with pytest.raises(PartyError, match="other keys"):
            Masks(keys[0], wrong, "0", bytes(32))
    with pytest.raises(PartyError, match="party '1' sent a key that is none"):
        Masks(keys[0], roster | {"1": bytes(32)}, "0", bytes(32))


@pytest.mark.parametrize("shares", [2, 3])
@pytest.mark.parametrize("trusted", [True, False])
def test_the_noise_of_the_honest_parties_alone_suffices(shares, trusted):
    """Three parties of whom ``shares`` are honest: 3 / shares of the variance in all.

    The variance of 16,384 numbers is off by a part of 5 sqrt(2 / 16384) = 5.5 % less than once in 10^6
    runs; a party that adds none takes a third off.
    """
    noises = [PartiesNoise()] * 4 if trusted else [SeededNoise(i) for i in range(4)]
    parts = hospitals(3)
    found, _ = together(parts, QUERY, Ones(), GRID, SCALE, noises, shares=shares, rounds=4)
    whole = sum(clipped_sum(part, None, Ones(), "l2", GRID) for part in parts) * GRID
    variance = np.var(np.concatenate([one - whole for one in found])) / SCALE**2
    assert variance == pytest.approx(3 / shares, rel=0.055)


@pytest.mark.parametrize("shares", [1, 2])
def test_the_law_of_the_noise_that_colluders_do_not_know_is_the_one_that_is_proved(shares):
    """Three parties; what is left when 3 - shares take their noise off, against the exact law of its sum.

    Eight steps: each whole number is counted. A chi-square test that fails once in 10^6 honest runs.
    """
    steps, taken, n_rounds = 8.0, [], 4

    class Kept(PartiesNoise):
        def noisy(self, family, total, scale, grid=None):
            drawn = super().noisy(family, total, scale, grid)
            taken.append(drawn)
            return drawn

    noises = [PartiesNoise() for _ in range(shares + 1)] + [Kept() for _ in range(3 - shares)]
    query = replace(QUERY, noise_multiplier=steps)
    parts = hospitals(3)
    found, _ = together(parts, query, Ones(), 1.0, steps, noises, shares=shares, rounds=n_rounds)
    whole = sum(clipped_sum(part, None, Ones(), "l2", 1.0) for part in parts)
    left = np.sum(found, axis=0) - n_rounds * whole - np.sum(taken, axis=0)
    # The sum of four answers: each entry is the sum of four draws of the honest.
    law = law_of(n_rounds * shares, steps / math.sqrt(shares))
    far = len(law) // 2
    near = np.abs(np.arange(-far, far + 1)) <= 32
    counts = np.bincount(np.clip(left, -33, 33).astype(int) + 33, minlength=67)
    expected = N_ENTRIES * law[near].astype(float)
    seen = ((counts[1:-1] - expected) ** 2 / expected).sum()
    rest, outside = N_ENTRIES - expected.sum(), counts[0] + counts[-1]
    assert seen + (outside - rest) ** 2 / rest < chi2.isf(1e-6, 65)


@pytest.mark.parametrize("shares", [2, 3, 7])
def test_the_exact_privacy_of_the_noise_is_within_what_is_charged(shares):
    """The most that any event tells two totals apart, one unit from each other, by the law of the sum."""
    deviation = 64.0 * math.sqrt(
        shares
    )  # there the slack of discrete noise is small enough to see past
    shift = round(deviation)
    mu, slack = shift / deviation, delta_slack(1, deviation, shares=shares)

    def advantage(n_shares, epsilon):
        law = law_of(n_shares, 64.0)
        return np.maximum(law[shift:] - math.exp(epsilon) * law[:-shift], 0.0).sum()

    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        beyond = math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert advantage(shares, epsilon) <= norm.cdf(mu / 2 - epsilon / mu) - beyond + slack
    assert advantage(shares - 1, 0.0) > 2 * norm.cdf(mu / 2) - 1 + slack  # a share too few is seen


def test_the_coordinators_noise_is_not_scaled_by_parties():
    noises = [TrustedNoise()] + [SeededNoise(i) for i in range(3)]
    parts = hospitals(3)
    found, _ = together(parts, QUERY, Ones(), GRID, SCALE, noises, shares=None, rounds=4)
    whole = sum(clipped_sum(part, None, Ones(), "l2", GRID) for part in parts) * GRID
    variance = np.var(np.concatenate([one - whole for one in found])) / SCALE**2
    assert variance == pytest.approx(1.0, rel=0.055)


def pmf(variance, far):
    """The discrete Gaussian on -far .. far."""
    z = np.arange(-far, far + 1, dtype=np.longdouble)
    weights = np.exp(-z * z / (2 * np.longdouble(variance)))
    return weights / weights.sum()


def law_of(n_shares, deviation):
    """The exact law of the sum of so many discrete Gaussians."""
    law = np.ones(1)
    for _ in range(n_shares):
        law = np.convolve(law, pmf(deviation**2, int(30 * deviation)))
    return law


@pytest.mark.parametrize("n_shares", [2, 3, 5])
@pytest.mark.parametrize("share", [0.5, 0.7, 1.0])
def test_the_price_of_a_sum_bounds_what_convolving_shows(n_shares, share):
    """Every log-ratio of the exact law of the sum to the discrete Gaussian is within what is charged.

    Deviations of half a step to one: there the price can be seen in floating point at all.
    """
    variance = share**2
    law = pmf(variance, 60)
    total = law
    for _ in range(n_shares - 1):
        total = np.convolve(total, law)
    far = len(total) // 2
    whole = pmf(n_shares * variance, far)
    near = slice(far - 8, far + 9)
    seen = np.abs(np.log(total[near] / whole[near])).max()
    bound = 5 * (n_shares - 1) * np.exp(-(np.pi**2) * variance)
    assert 0 < seen <= bound
    assert seen > bound / 1000  # a bound on this, not on something else


def test_the_price_is_charged_and_is_nothing_on_our_grids():
    assert delta_slack(10**6, 2.0**31, shares=30) == delta_slack(10**6, 2.0**31)
    # Shares of two steps are the least there is a proof for, and there the price can be seen.
    seen = delta_slack(1, 2.0**12, shares=2**22) - delta_slack(1, 2.0**12)
    assert seen == pytest.approx(3 * 5 * (2**22 - 1) * np.exp(-9.86 * 4), rel=1e-3)
    assert delta_slack(1, 2.0**12, shares=2**22 + 1) == 1.0
    with pytest.raises(InputError, match="one share"):
        delta_slack(10, 8.0, shares=0)


def test_what_64_bits_cannot_hold_is_refused_beforehand():
    plan = Plan((Query("sums", (100,), 2.0**25),), n_records=1000, n_features=10)
    check_room(plan, 3, shares=2)
    with pytest.raises(InputError, match="64-bit sums"):
        check_room(plan, 1000, shares=1)
    check_room(plan, 1000, shares=999)
    wide = Plan((Query("sums", (100,), 20.0),), n_records=2**30, n_features=10)
    check_room(wide, 1000, shares=1)
