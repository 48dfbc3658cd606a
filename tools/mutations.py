"""Errors that would make an epsilon false, one for every sensitivity, clip, noise scale, kappa and event.

A mutation is a snippet that occurs exactly once in ``src/``, what it becomes, and the test files (by name, in
the order in which they are run) of which one must fail. To add one: copy the line that carries the
claim, break it in the smallest way that would cost privacy, and run ``python -m tools.mutants NAME``. A
change that only costs accuracy or time is no mutation for this list.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """One planted error."""

    name: str
    snippet: str
    becomes: str
    tests: tuple[str, ...]


def _in(*tests: str) -> tuple[str, ...]:
    return tests


SENSITIVITY = [
    Mutation(
        "statistics: a row's l2 length is that of its largest entry",
        'sums = np.einsum("ij,ij->i", rows, rows)',
        "sums = (rows * rows).max(axis=1)",
        _in("test_contributions"),
    ),
    Mutation(
        "statistics: a row's l1 length is that of its largest entry",
        "sums = np.abs(rows).sum(axis=1)",
        "sums = np.abs(rows).max(axis=1)",
        _in("test_contributions"),
    ),
    Mutation(
        "groups: blanking a person is charged one clip bound",
        '"groups", "group", parts=dict.fromkeys(UNITS, _PART),',
        '"groups", "group",',
        _in("test_kinds", "test_group_audit", "test_group_fits"),
    ),
    Mutation(
        "kappa: a household touches the pairs of its first people only",
        "touched = np.concatenate([values[:, 0], once[once >= 0]])",
        "touched = values[:, 0]",
        _in("test_sharing"),
    ),
    Mutation(
        "kappa: pairs are chosen as if nobody shared a household",
        "kept = across[select_pairs(values[across], how, random_state=random_state)]",
        "kept = across[select_pairs(pairs[across], how, random_state=random_state)]",
        _in("test_sharing"),
    ),
    Mutation(
        "groups and tuples: the terms alone are clipped",
        "longest = np.maximum(longest, terms / SPREAD)",
        "longest = terms / SPREAD",
        _in("test_group_sums", "test_tuple_losses"),
    ),
    Mutation(
        "groups: somebody may be in two of them",
        "if np.bincount(found[found != VACANT], minlength=1).max() > 1:",
        "if np.bincount(found[found != VACANT], minlength=1).max() > 2:",
        _in("test_groups"),
    ),
    Mutation(
        "rounding: a mean over groups is charged that of one pair a group",
        "+ 2 * gamma * TILE * terms",
        "+ 0 * gamma * TILE * terms",
        _in("test_group_sums"),
    ),
    Mutation(
        "clip: a group contributes what its pairs add up to",
        "total += self.of.tile_sum(differences, told[group, slot], norm) / n_pairs",
        "total += self.of.tile_sum(differences, told[group, slot], norm)",
        _in("test_group_sums"),
    ),
    Mutation(
        "clip: a record's gradient is not clipped",
        "factor = shrinking(U, rows, self.clip, norm)",
        "factor = 1.0 * (shrinking(U, rows, self.clip, norm) > 0)",
        _in("test_tuple_losses", "test_tuples"),
    ),
    Mutation(
        "clip: in l1 a group's or tuple's gradient is as long as in l2",
        '    elif norm == "l1":\n        longest = terms * (1 + CLIP_ERROR)',
        '    elif norm == "l1":\n        longest = terms / math.sqrt(k * d)',
        _in("test_tuple_losses", "test_group_sums"),
    ),
    Mutation(
        "sensitivity: rounding to the grid is not charged",
        "+ grid * _width(n_entries, norm)",
        "+ 0.0 * grid * _width(n_entries, norm)",
        _in("test_grid", "test_fuzz_sensitivity"),
    ),
    Mutation(
        "sensitivity: the float error of a tile is not charged",
        "return clipped * (1.0 + 2.0 * gamma * tile)",
        "return clipped * (1.0 + 0.0 * gamma * tile)",
        _in("test_grid", "test_fuzz_sensitivity"),
    ),
    Mutation(
        "sensitivity: terms longer than their sum are not charged",
        "terms = max(self.clip, self.largest_term)",
        "terms = self.clip",
        _in("test_sums", "test_fuzz_sensitivity"),
    ),
    Mutation(
        "sensitivity: the compiled loop's error is not charged",
        "return max(super().sensitivity(norm, grid), self.clip + more)",
        "return max(super().sensitivity(norm, grid), self.clip)",
        _in("test_sums", "test_fuzz_sensitivity"),
    ),
    Mutation(
        "sensitivity: drift inside a tile is not charged",
        "drift = (1 + eta) * (1 + 2 * gamma * tile) - 1",
        "drift = eta",
        _in("test_kernels", "test_sums", "test_fuzz_sensitivity"),
    ),
    Mutation(
        "sensitivity: sums may overflow 64 bits",
        "n_pairs * clip / grid > 2.0**62 or",
        "n_pairs * clip / grid > 2.0**80 or",
        _in("test_grid"),
    ),
    Mutation(
        "sensitivity: entries are rounded away from zero",
        "units[b, j] = np.trunc(",
        "units[b, j] = np.ceil(",
        _in("test_exact_kernels"),
    ),
    Mutation(
        "sensitivity: a Poisson sample moves its neighbours between tiles",
        "separately=query.is_sampled)",
        "separately=False)",
        _in("test_exact_kernels", "test_sums", "test_fuzz_sensitivity"),
    ),
]

CLIP = [
    Mutation(
        "clip: residuals of people count in full",
        "factor = weights * shrink(row_norms(residuals, norm), self.clip)",
        "factor = weights",
        _in("test_class_steps"),
    ),
    Mutation(
        "clip: a person's place among many classes is brought to 1 in each row, not as a whole",
        "place *= (shrink(row_norms(place, norm), 1.0) * (classes >= 0))[:, None]",
        "place = np.clip(place, -1.0, 1.0) * (classes >= 0)[:, None]",
        _in("test_class_steps"),
    ),
    Mutation(
        "clip: a person's weight above 1 counts in full",
        "weights = np.clip(np.append(self.weights, 0.0)[classes], 0.0, 1.0)",
        "weights = np.append(self.weights, 0.0)[classes]",
        _in("test_class_steps"),
    ),
    Mutation(
        "clip: lengths are brought to 1.1 times the bound",
        "factor: FloatArray = clip / np.maximum(lengths, clip)",
        "factor: FloatArray = 1.1 * clip / np.maximum(lengths, 1.1 * clip)",
        _in("test_sums", "test_exact_audit"),
    ),
    Mutation(
        "clip: gradients are brought to 1.1 times the bound (compiled)",
        "s = c * (clip / norm) if norm > clip else c",
        "s = c * (1.1 * clip / norm) if norm > 1.1 * clip else c",
        _in("test_kernels", "test_exact_audit"),
    ),
    Mutation(
        "clip: l2 where Laplace noise needs l1 (compiled)",
        "norm = abs(c) * (_sizes(p, b) * _sizes(x, b) if l1 else distance * length)",
        "norm = abs(c) * distance * length",
        _in("test_kernels", "test_exact_audit"),
    ),
    Mutation(
        "clip: l2 where Laplace noise needs l1 (plain loop)",
        "long_u, long_x = row_norms(U.reshape(-1, k), norm), row_norms(rows, norm)",
        "long_u, long_x = row_norms(U.reshape(-1, k)), row_norms(rows)",
        _in("test_sums", "test_kernels", "test_fuzz_sensitivity"),
    ),
    Mutation(
        "clip: the label's weight is left out of the gradient's norm",
        "c = weights[1] * (distance - margin) / distance",
        "c = 1.2 * weights[1] * (distance - margin) / distance",
        _in("test_kernels", "test_sums"),
    ),
    Mutation(
        "clip: the l1 norm is the largest entry",
        "sums = np.abs(rows).sum(axis=1)",
        "sums = np.abs(rows).max(axis=1)",
        _in("test_sums", "test_fuzz_sensitivity"),
    ),
    Mutation(
        "clip: the survey forgets the label's entry",
        "np.sqrt(unit + length**2 + similar**2)",
        "np.sqrt(unit + length**2)",
        _in("test_sums", "test_fuzz_sensitivity", "test_exact_audit"),
    ),
    Mutation(
        "clip: a null pair counts in the survey",
        "factor = shrink(norms, self.clip) * unit",
        "factor = shrink(norms, self.clip)",
        _in("test_sums", "test_fuzz_sensitivity", "test_exact_audit"),
    ),
    Mutation(
        "clip: the signal's length is halved",
        "lengths = np.abs(sign) * self._length(differences, inverse, centre, norm)",
        "lengths = 0.5 * np.abs(sign) * self._length(differences, inverse, centre, norm)",
        _in("test_sums", "test_fuzz_sensitivity", "test_exact_audit"),
    ),
    Mutation(
        "clip: the signal's centre is counted twice",
        "np.maximum(unit - self.n_features * centre**2, 0.0)",
        "np.maximum(unit - 2 * self.n_features * centre**2, 0.0)",
        _in("test_sums", "test_fuzz_sensitivity", "test_exact_audit"),
    ),
    Mutation(
        "choice: a pair counts twice for a column",
        "whole = np.where(labels > 0, -similar, dissimilar).astype(np.float64)",
        "whole = 2 * np.where(labels > 0, -similar, dissimilar).astype(np.float64)",
        _in("test_choose", "test_fuzz_choices"),
    ),
    Mutation(
        "clip: margins count a dissimilar pair twice",
        "shrink(row_norms(contributions, norm), self.clip) * live",
        "2 * shrink(row_norms(contributions, norm), self.clip) * live",
        _in("test_sums", "test_fuzz_sensitivity", "test_exact_audit"),
    ),
    Mutation(
        "clip: a threshold's histogram counts a pair twice",
        "return self.counts(cells[:, None], there).astype(np.float64)",
        "return 2 * self.counts(cells[:, None], there).astype(np.float64)",
        _in("test_sums", "test_fuzz_sensitivity", "test_dpp", "test_contract"),
    ),
    Mutation(
        "deep: what float32 loses of a norm is not added",
        "square = square + ((1 + gammas[0]) * (1 + gammas[1]) - 1) * terms**2",
        "pass",
        _in("test_rounding"),
    ),
    Mutation(
        "deep: the branches' cross terms do not count",
        "square = ((inner * weigh + one) * slopes).sum(dim=(1, 2))",
        "square = ((inner * weigh + one) * slopes).diagonal(dim1=1, dim2=2).sum(dim=1)",
        _in("test_rounding"),
    ),
    Mutation(
        "deep: slopes that need a third digit are not shrunk",
        "fits = peak / (LIMIT * self.grid)",
        "fits = 0 * peak",
        _in("test_rounding"),
    ),
    Mutation(
        "deep: norms are products in whatever precision a user allows",
        'place.fp32_precision = "ieee"',
        "pass",
        _in("test_rounding"),
    ),
]

NOISE = [
    Mutation(
        "noise: half of what the plan names",
        "return query.noise_multiplier * moved",
        "return 0.5 * query.noise_multiplier * moved",
        _in("test_exact_audit", "test_learner_target"),
    ),
    Mutation(
        "noise: scaled to the clip bound without its rounding",
        "moved = statistic.sensitivity(query.mechanism.norm, grid, self._backend.dtype)",
        "moved = statistic.clip",
        _in("test_exact_audit", "test_sums", "test_scale"),
    ),
    Mutation(
        "noise: seeded Gaussian noise is too small",
        "self._rng.normal(0.0, scale, total.shape)",
        "self._rng.normal(0.0, 0.8 * scale, total.shape)",
        _in("test_noise"),
    ),
    Mutation(
        "noise: seeded Laplace noise is too small",
        "self._rng.laplace(0.0, scale, total.shape)",
        "self._rng.laplace(0.0, 0.8 * scale, total.shape)",
        _in("test_noise"),
    ),
    Mutation(
        "noise: exact noise is too small",
        "drawn = draw(family, scale_above(scale / grid), total.size, process_keystream())",
        "drawn = draw(family, scale_above(0.8 * scale / grid), total.size, process_keystream())",
        _in("test_noise"),
    ),
    Mutation(
        "noise: the sampler's scale is rounded down",
        "Fraction(math.ceil(Fraction(scale) * parts), parts)",
        "Fraction(math.floor(Fraction(scale) * parts), parts)",
        _in("test_discrete", "test_noise"),
    ),
    Mutation(
        "noise: exact noise has no sign",
        "sign = (np.int64(word << bits) >> 63) & signs  # 0 or -1",
        "sign = np.int64(0)",
        _in("test_discrete"),
    ),
    Mutation(
        "noise: the sampler rejects by another law",
        "odd = _TWO * k + _ONE if gaussian else _ONE",
        "odd = _TWO * k + _TWO if gaussian else _ONE",
        _in("test_discrete", "test_sampling_table"),
    ),
    Mutation(
        "noise: a sum that wraps around is let through",
        "wrapped = ((one ^ result) & (other ^ result)) < 0",
        "wrapped = False",
        _in("test_noise"),
    ),
    Mutation(
        "noise: seeded samples are drawn too often",
        "np.flatnonzero(self._rng.random(n) < q)",
        "np.flatnonzero(self._rng.random(n) < 1.2 * q)",
        _in("test_noise"),
    ),
    Mutation(
        "noise: calibration stops too early",
        "while cost(noise) > epsilon:",
        "while cost(noise) > 1.02 * epsilon:",
        _in("test_calibration", "test_dpp"),
    ),
    Mutation(
        "noise: calibration returns noise that was refused",
        "low, cost_low = middle, cost_middle\n    return high",
        "low, cost_low = middle, cost_middle\n    return low",
        _in("test_calibration"),
    ),
    Mutation(
        "noise: a share's noise forgets that replacing costs twice",
        "return cost_of(self.kappa).sensitivity(self.adjacency)",
        "return float(cost_of(self.kappa).records)",
        _in("test_dpp", "test_exact_audit", "test_contract"),
    ),
    Mutation(
        "noise: steps are not composed",
        "return math.sqrt(times) * (budget.sensitivity",
        "return 1.0 * (budget.sensitivity",
        _in("test_dpp", "test_exact_audit", "test_contract"),
    ),
    Mutation(
        # Where a mechanism's own guess of its noise is too low, this is what corrects it.
        "noise: what a plan costs is not held against the budget",
        "if cost <= facts.budget.epsilon:",
        "if cost <= 2 * facts.budget.epsilon:",
        _in("test_planning"),
    ),
]

CHOICES = [
    Mutation(
        "choice: several are charged as one",
        "ChoiceEvent(self.eta(query.noise_multiplier), steps=query.steps)",
        "ChoiceEvent(self.eta(query.noise_multiplier), steps=1)",
        _in("test_choose"),
    ),
    Mutation(
        "choice: a record moves two units of what is drawn by",
        "self._noise.choose(total, eta, UNIT)",
        "self._noise.choose(total, eta, UNIT // 2)",
        _in("test_choice_audit", "test_choose"),
    ),
    Mutation(
        "choice: scores are rounded to a finer unit than is drawn by",
        "return whole_scores(*self.contributions(values, contents), UNIT)",
        "return whole_scores(*self.contributions(values, contents), 2 * UNIT)",
        _in("test_fuzz_choices", "test_choice_audit"),
    ),
    Mutation(
        "choice: a weight above 1 counts in full",
        "return int(UNIT * min(max(weight, 0.0), 1.0))",
        "return int(UNIT * max(weight, 0.0))",
        _in("test_fuzz_choices"),
    ),
    Mutation(
        "choice: a dissimilar pair counts twice",
        "whole = np.where(labels > 0, -similar, dissimilar)",
        "whole = np.where(labels > 0, -similar, 2 * dissimilar)",
        _in("test_fuzz_choices"),
    ),
    Mutation(
        "choice: a person takes off the windows that are wrong about her",
        "found += [right, whole[0].sum() + whole[1].sum() - right]",
        "found += [2 * right - whole[0].sum() - whole[1].sum(), -right]",
        _in("test_class_choice"),
    ),
    Mutation(
        "choice: made by any statistic",
        "if isinstance(statistic, Scores) != query.is_choice:",
        "if False:",
        _in("test_choose"),
    ),
    Mutation(
        "choice: made from a sample and charged as from all",
        """        if query.sample_rate < 1:
            raise InputError("a choice is made""",
        """        if query.sample_rate < 0:
            raise InputError("a choice is made""",
        _in("test_choose"),
    ),
]

KAPPA = [
    Mutation(
        "kappa: relationships are one too small",
        "relationship=found.second,",
        "relationship=max(1, found.second - 1),",
        _in("test_kappa"),
    ),
    Mutation(
        "kappa: a person is taken for a relationship",
        "person=found.max_degree,",
        "person=found.second,",
        _in("test_kappa"),
    ),
    Mutation(
        "kappa: a pair that occurs twice counts once",
        "pair=adjacency.multiplicity,",
        "pair=1,",
        _in("test_kappa"),
    ),
    Mutation(
        "kappa: the plan is made for one pair, whatever the unit",
        "Budget(given.epsilon, delta, records.costs[given.unit], given.adjacency)",
        'Budget(given.epsilon, delta, records.costs["pair"], given.adjacency)',
        _in("test_dpp", "test_exact_audit", "test_contract"),
    ),
    Mutation(
        "kappa: a person is in one tuple",
        "person=int(np.bincount(numbers.ravel()).max()),",
        "person=1,",
        _in("test_kappa_of_tuples", "test_tuples"),
    ),
    Mutation(
        "kappa: two people share one tuple",
        "return int(np.unique(ends[0] * n + ends[1], return_counts=True)[1].max())",
        "return 1",
        _in(
            "test_kappa_of_tuples",
        ),
    ),
    Mutation(
        "kappa: a relationship's tuples are the third largest b",
        "next_largest, largest = np.sort(b)[-2:].tolist()",
        "next_largest, largest = np.sort(b)[[-3, -1]].tolist()",
        _in(
            "test_kappa_of_tuples",
        ),
    ),
    Mutation(
        "kappa: a fact about two people is in one record",
        'touches={"pair": 2, "relationship": 2, "person": 1}',
        'touches={"pair": 2, "relationship": 1, "person": 1}',
        _in("test_people_audit", "test_scatter"),
    ),
    Mutation(
        "kinds: a choice inside a worker is charged one clip bound",
        'parts={"choice": _PART},',
        "parts={},",
        _in("test_kinds", "test_ranking"),
    ),
    Mutation(
        "kappa: a kappa below the graph's is accepted",
        "if given.kappa < needed:",
        "if given.kappa < 1:",
        _in("test_dpp", "test_contract"),
    ),
    Mutation(
        "kappa: chains across a fit and its threshold are not counted",
        'sizes["relationship"] = max(sizes["relationship"], sizes["person"])',
        "pass",
        _in("test_plan"),
    ),
    Mutation(
        "kappa: chains across fits are not counted by the ledger",
        'counted: Unit = "person" if unit == "relationship" and _chains_cross(entries) else unit',
        "counted: Unit = unit",
        _in("test_ledger"),
    ),
]

EVENTS = [
    Mutation(
        "ledger: a second name of the file keeps a budget of its own",
        "if ledger.exists() and ledger.stat().st_nlink > 1:",
        "if ledger.exists() and ledger.stat().st_nlink > 2:",
        _in("test_ledger_processes"),
    ),
    Mutation(
        "event: Laplace steps count once",
        "return LaplaceEvent(query.noise_multiplier, steps=query.epochs)",
        "return LaplaceEvent(query.noise_multiplier, steps=1)",
        _in("test_exact_audit", "test_dpp", "test_contract"),
    ),
    Mutation(
        "event: epochs of disjoint batches count once",
        "return DisjointGaussianEvent(query.noise_multiplier, epochs=query.epochs)",
        "return DisjointGaussianEvent(query.noise_multiplier, epochs=1)",
        _in("test_exact_audit", "test_dpp", "test_contract"),
    ),
    Mutation(
        "event: a begun epoch is free",
        "return math.ceil(self.steps / self.n_batches)",
        "return max(1, math.floor(self.steps / self.n_batches))",
        _in("test_plan"),
    ),
    Mutation(
        "event: Gaussian steps count once",
        "query.noise_multiplier, sample_rate=query.sample_rate, steps=query.steps",
        "query.noise_multiplier, sample_rate=query.sample_rate, steps=1",
        _in("test_exact_audit", "test_dpp", "test_contract"),
    ),
    Mutation(
        "event: the first release is not accounted",
        "return tuple(query.event() for query in self.queries)",
        "return tuple(query.event() for query in self.queries[1:])",
        _in("test_exact_audit", "test_dpp", "test_contract"),
    ),
    Mutation(
        "event: the engine releases twice what was planned",
        "if self._done[query] + steps > query.steps:",
        "if self._done[query] + steps > 2 * query.steps:",
        _in("test_sums", "test_dpp", "test_scale", "test_contract"),
    ),
    Mutation(
        "event: nobody checks that the plan was followed",
        "return self._done == Counter({query: query.steps for query in queries})",
        "return True",
        _in("test_plan"),
    ),
]

ACCOUNTING = [
    Mutation(
        "events: a missing number of steps is read as one",
        "listed = [(field.name, kinds[field.name]) for field in fields(cls)]",
        "listed = [(field.name, kinds[field.name], 1) for field in fields(cls)]",
        _in("test_events"),
    ),
    Mutation(
        "accounting: kappa is left out of mu",
        "mu = _mu(reach, noise)\n",
        "mu = _mu(reach / cost.records, noise)\n",
        _in("test_accounting"),
    ),
    Mutation(
        "accounting: replacing costs as much as zeroing out",
        'return float(self.zero_out if adjacency == "zero-out" else self.replace)',
        "return float(self.zero_out)",
        _in("test_accounting"),
    ),
    Mutation(
        "accounting: Laplace steps are not added up",
        "pure_total=_sum_up([e * n for e, n in dear])",
        "pure_total=_sum_up([e for e, _ in dear])",
        _in("test_accounting"),
    ),
    Mutation(
        "accounting: without sampling replace costs sqrt 2, not 2",
        "return steps * _mu((2.0 if replaced else 1.0) * records, noise) ** 2",
        "return steps * _mu((1.4 if replaced else 1.0) * records, noise) ** 2",
        _in("test_accounting", "test_accounting_oracle", "test_fuzz_accountant"),
    ),
    Mutation(
        "accounting: events beyond the limit are forgotten",
        "aside=_sum_up(aside),",
        "aside=0.0,",
        _in("test_foreign_releases"),
    ),
    Mutation(
        "accounting: choices beyond the limit are no part of zCDP",
        "choice_rho(_round_up(eta)) for eta, n in ranges)",
        "choice_rho(_round_up(eta)) for eta, n in ranges[:MAX_DISTINCT])",
        _in("test_foreign_releases"),
    ),
    Mutation(
        "profile: events beyond the limit do not shift it",
        "left = epsilon - composition.aside",
        "left = epsilon",
        _in("test_foreign_releases"),
    ),
    Mutation(
        "accounting: sampled replacement is compared with nulls",
        "return (GaussianPair(means, weights, -means, weights, given_up),)",
        "return (GaussianPair(means, weights, np.zeros(1), np.array([1.0 - given_up]), given_up),)",
        _in("test_accounting", "test_accounting_oracle"),
    ),
    Mutation(
        "accounting: one direction only",
        "for way in ((0, 1) if both else (0,))",
        "for way in ((1,) if both else (0,))",
        _in("test_accounting", "test_accounting_oracle"),
    ),
    Mutation(
        "accounting: merged counts move down",
        "counts = np.minimum(first + width * np.arange(weights.size, dtype=np.float64), last)",
        "counts = np.maximum(first + width * (np.arange(weights.size, dtype=np.float64) - 1), first)",
        _in("test_accounting", "test_accounting_oracle", "test_fuzz_accountant"),
    ),
    Mutation(
        "accounting: what truncation loses is forgotten",
        "infinite = pair.lost + float(ndtr(pair.upper_means - high) @ pair.upper_weights)",
        "infinite = 0.0",
        _in("test_accounting"),
    ),
    Mutation(
        "accounting: losses are rounded down",
        "probs[:-1] += upper - b\n    probs[1:] += b",
        "probs[:-1] += upper",
        _in("test_accounting", "test_accounting_oracle"),
    ),
    Mutation(
        "accounting: the closed form allows twice the delta",
        "if _profile(middle, mu) * (1.0 + _SAFE) <= delta:",
        "if _profile(middle, mu) * (1.0 + _SAFE) <= 2 * delta:",
        _in("test_gdp"),
    ),
    Mutation(
        "accounting: discrete noise costs no delta",
        "below = n_samples * (radius**2 / (24.0 * variance)",
        "below = n_samples * (0.0 / (24.0 * variance)",
        _in("test_grid"),
    ),
    Mutation(
        "accounting: a ledger forgets what discrete noise costs",
        "delta=self.delta - slack)",
        "delta=self.delta)",
        _in("test_ledger"),
    ),
    Mutation(
        "ledger: a fork has a copy of the budget",
        "if os.getpid() != self._process:\n            raise InputError(\n"
        '                "a PrivacyLedger in memory belongs',
        'if False:\n            raise InputError(\n                "a PrivacyLedger in memory belongs',
        _in("test_ledger"),
    ),
    Mutation(
        "ledger: costs of a household and of one person add up",
        "alike = len(found) == 1 or found == {None, SINGLE}",
        "alike = True",
        _in("test_ledger"),
    ),
    Mutation(
        "ledger: households of nobody knows whom are the same",
        "if len(entries) > 1 and not (alike and UNNAMED not in found):",
        "if len(entries) > 1 and not alike:",
        _in("test_ledger"),
    ),
    Mutation(
        "ledger: an old entry goes with households",
        "alike = len(found) == 1 or found == {None, SINGLE}",
        "alike = len(found - {None}) <= 1",
        _in("test_ledger"),
    ),
    Mutation(
        "ledger: an entity's relationship is one of two records",
        'return dict.fromkeys(("relationship", "person"), f"entity {entity_records}")',
        'return {"person": f"entity {entity_records}"}',
        _in("test_ledger"),
    ),
    Mutation(
        "ledger: two columns of who changes together have one name",
        "hashed.update(_PERSON.pack(first.setdefault(value, place), len(text)) + text)",
        "hashed.update(_PERSON.pack(0, len(text)) + text)",
        _in("test_sharing", "test_private_thresholds"),
    ),
    Mutation(
        "ledger: an error curve forgets who changes together",
        "found = select_used(data, given.select, seed)",
        "found = select_used(data, given.select, seed)\n    "
        "found = found._replace(given=kappa(data.pairs), taken=kappa(found.used.pairs))",
        _in("test_error_curve"),
    ),
    Mutation(
        "ledger: row numbers of any table are the same people",
        "same = before == mark and all(one() is part for one, part in zip(seen, here, strict=True))",
        "same = before == mark",
        _in("test_private_thresholds"),
    ),
    Mutation(
        "ledger: row numbers of an array that was shuffled in place are the same people",
        "same = before == mark and all(",
        "same = all(",
        _in("test_private_thresholds"),
    ),
    Mutation(
        "ledger: row numbers of any learner are the same people",
        "return OWN_ROWS + digest_of(np.arange(used.n_people), used.pairs, secret)",
        "return OWN_ROWS + digest_of(np.arange(used.n_people), used.pairs)",
        _in("test_private_thresholds"),
    ),
    Mutation(
        "ledger: a default index names people",
        'if index.name == ID and index.dtype.kind in "iu":',
        'if index.dtype.kind in "iu":',
        _in("test_named_people"),
    ),
    Mutation(
        "certificate: a threshold on other pairs is not chained",
        "and all(one.same_pairs for one in parts)",
        "and any(one.same_pairs for one in parts)",
        _in("test_private_thresholds"),
    ),
    Mutation(
        "certificate: a metric and its threshold mean different people",
        "    if stated != added:\n        raise InputError(",
        "    if len(stated) != len(added):\n        raise InputError(",
        _in("test_private_thresholds"),
    ),
    Mutation(
        "certificate: verification takes any threshold for one on the fit's pairs",
        'if any(t.get("n_pairs") != c.n_pairs_used for t in thresholds):',
        "if False:",
        _in("test_private_thresholds"),
    ),
    Mutation(
        "recount: a household is counted as one person",
        'counted["person"] = (\n            "it covers',
        'counted["pair"] = (\n            "it covers',
        _in("test_trust"),
    ),
    Mutation(
        "recount: an entity is counted as one record",
        "person = pairs_of_entity(used, records)\n        related = found",
        "person = found.person\n        related = found",
        _in("test_trust"),
    ),
    Mutation(
        "recount: any graph falls into groups",
        'return {unit: 1 if unit == "pair" or largest <= limit else 2 for unit in c.units}',
        "return {unit: 1 for unit in c.units}",
        _in("test_trust"),
    ),
    Mutation(
        "recount: pairs of a threshold are taken for the fit's",
        'if not all(isinstance(one, dict) and one.get("same_pairs") is True for one in others):',
        "if False:",
        _in("test_trust"),
    ),
    Mutation(
        "accounting: a ledger lets twice its budget through",
        "if not total <= self.epsilon:",
        "if not total <= 2 * self.epsilon:",
        _in("test_ledger"),
    ),
    Mutation(
        "accounting: a plan's delta forgets what exact noise takes off it",
        "plan.events(), kappa=budget.kappa, adjacency=budget.adjacency, delta=delta - slack",
        "plan.events(), kappa=budget.kappa, adjacency=budget.adjacency, delta=delta",
        _in("test_planning"),
    ),
]

COUNTS = [
    Mutation(
        "counts: replacing costs sqrt(2) under Laplace noise too",
        "whole = self.cost if l2 or self.other_norms is None else self.other_norms",
        "whole = self.cost",
        _in("test_counts"),
    ),
    Mutation(
        "counts: the cell of the label is not in the bound",
        "return math.sqrt(n_comparisons + LABEL_WEIGHT**2)",
        "return math.sqrt(n_comparisons)",
        _in("test_counts"),
    ),
    Mutation(
        "counts: an entity is charged for one record less",
        "degrees[:entity_records].sum()",
        "degrees[: entity_records - 1].sum()",
        _in("test_counts"),
    ),
    Mutation(
        "counts: one record more than the bound counts",
        "late = (place >= most)[at]",
        "late = (place > most)[at]",
        _in("test_counts"),
    ),
    Mutation(
        "counts: the bound of scores is that of the shortest column",
        "column = root(n_cells)[:, 0]",
        "column = root(n_cells)[:, -1]",
        _in("test_error_curve"),
    ),
    Mutation(
        "counts: several scores of a pair are charged as one",
        "return float(n_scores)",
        "return 1.0",
        _in("test_private_auc"),
    ),
    Mutation(
        "counts: a curve's bands leave the noise out",
        "worst = np.clip(counts + z * noise, 0.0, fewest)",
        "worst = np.clip(counts, 0.0, fewest)",
        _in("test_error_curve"),
    ),
    Mutation(
        "linkage: a cell that holds no level stops the run",
        "return np.where(wrong, np.nan, cut), counts",
        "return cut, counts",
        _in("test_link_command"),
    ),
    Mutation(
        "linkage: which half a pair is in follows from its place in the file",
        'bits = [hashlib.sha256(one.encode("utf-8", "surrogatepass")).digest()[0] & 1 for one in ids]',
        "bits = [at & 1 for at, _ in enumerate(ids)]",
        _in("test_link_command"),
    ),
    Mutation(
        "linkage: a condition calls what functions it likes",
        "if name not in FUNCTIONS:",
        "if not name:",
        _in("test_conditions"),
    ),
    Mutation(
        "linkage: a condition looks at term frequencies",
        "if base.startswith(self.frequencies):",
        "if not base:",
        _in("test_conditions"),
    ),
    Mutation(
        "engine: threads count their answers at once",
        "with self._alone:\n            place, step = sum(self._done.values()), self._done[query]",
        "if self._alone:\n            place, step = sum(self._done.values()), self._done[query]",
        _in("test_sums"),
    ),
    Mutation(
        "search: a pair that is there twice is learned from and scored",
        "scored = held_out[mentioned(whole.pairs, ends)]",
        "scored = np.resize(held_out, len(ends))",
        _in("test_search"),
    ),
    Mutation(
        "labels: how many can be read decides whether a run goes on, whatever was said of them",
        "        if self._zero_means is None:\n            self._refuse_spelling(codes, numbers)",
        "        self._refuse_spelling(codes, numbers)\n        if self._zero_means is None:",
        _in("test_labels"),
    ),
    Mutation(
        "cells: one more that cannot be read stops a run",
        'warn(\n            f"most cells of {many(',
        'raise InputError(\n            f"most cells of {many(',
        _in("test_schema_plan"),
    ),
    Mutation(
        "sign: a key that others can read signs",
        "if found.st_uid == os.getuid() and found.st_mode & 0o077:",
        "if found.st_mode & 0o7000:",
        _in("test_signing"),
    ),
    Mutation(
        "cells: one text swaps day and month of all dates of its column",
        "if any(_read_otherwise(day, self.format) for day in _DAYS):",
        "if False:",
        _in("test_one_cell"),
    ),
    Mutation(
        "pickles: what is prepared goes with people's features",
        '    def __reduce__(self) -> NoReturn:\n        raise TypeError(\n            "what is prepared',
        '    def _refused(self) -> NoReturn:\n        raise TypeError(\n            "what is prepared',
        _in("test_search"),
    ),
    Mutation(
        "deep: batches as large as those that are run are not tried",
        "return (4,) if self.micro_batch <= 4 else (4, self.micro_batch)",
        "return (4,)",
        _in("test_gradients"),
    ),
    Mutation(
        "deep: nobody looks whether records mix on the way back",
        "self._at_two_weights(self._check_slopes_apart)",
        "pass",
        _in("test_gradients"),
    ),
    Mutation(
        "deep: code of the user's own is certified like torch's layers",
        "type(layer) in _APART\n",
        "True\n",
        _in("test_memory"),
    ),
    Mutation(
        "deep: a network that is known but for a hook is certified without an assumption",
        'and not any(held for name, held in vars(layer).items() if name.endswith("_hooks"))',
        "",
        _in("test_memory"),
    ),
    Mutation(
        "deep: only random rows are tried, among which nothing is empty, padded, alike or whole",
        "for usual, other in self._unusual(rows):",
        "for usual, other in ():",
        _in("test_gradients"),
    ),
    Mutation(
        "deep: on the CPU too a module that draws on the way back is compared with a tolerance",
        "problem = self._mixed_slopes(same_bits)",
        "problem = self._mixed_slopes(_roughly)",
        _in("test_gradients"),
    ),
    Mutation(
        "deep: on a GPU a tolerance alone decides whether records mix on the way back",
        "problem = self._mixed_on_cpu() or self._mixed_slopes(_roughly)",
        "problem = self._mixed_slopes(_roughly)",
        _in("test_gradients"),
    ),
    Mutation(
        "deep: what Python's own objects keep is not looked into",
        'yield "state", _state(value)',
        "yield from ()",
        _in("test_memory"),
    ),
    Mutation(
        "audit: a canary stands alone",
        "self._uneven = _uneven(canary.second) if canary.hides_features else None",
        "self._uneven = None",
        _in("test_registered"),
    ),
    Mutation(
        "linkage: a lambda's parameter may be the name of the table",
        "if len(path) > 1:  # DuckDB",
        "if len(path) > 9:  # DuckDB",
        _in("test_conditions"),
    ),
    Mutation(
        "linkage: everybody's cells decide whether numbers are whole",
        'if by_name[one.lower()].endswith(("INT", "INTEGER"))',
        'if by_name[one.lower()].endswith(("no such kind",))',
        _in("test_conditions"),
    ),
    Mutation(
        "linkage: conditions reach files",
        '"enable_external_access": "false"',
        '"enable_external_access": "true"',
        _in("test_conditions"),
    ),
    Mutation(
        "linkage: everybody's cells decide the type of a column",
        "column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=True",
        "strings_can_be_null=True",
        _in("test_conditions"),
    ),
]

READING = [
    Mutation(
        "notes: rows of repeated pairs may become part of an output",
        'merged{where}", PrivateNote)',
        'merged{where}", UserWarning)',
        _in("test_resolving"),
    ),
    Mutation(
        "notes: how many rows were clipped may become part of an output",
        "warn(message, PrivateNote)",
        "warn(message, UserWarning)",
        _in("test_bad_input"),
    ),
    Mutation(
        "layouts: links are known by the value of a label",
        "return _most(one[2] != 0 for one in _links(look.lines) if one)",
        'return any(_SPACES.split(line)[2:] == ["-1"] for line in look.lines)',
        _in("test_layouts"),
    ),
    Mutation(
        "schema: a logarithm is taken of what lies outside the bounds",
        "inside = maths.clip(maths.where(missing, fill, cell), low, high)",
        "inside = maths.where(missing, fill, cell)",
        _in("test_logarithms"),
    ),
    Mutation(
        "reading: pairs whose label cannot be read are left out",
        "wrong = unknown | selves",
        "wrong = unknown | selves | (False if pairs.null is None else pairs.null)",
        _in("test_dirt"),
    ),
    Mutation(
        "sparse: indices are followed unseen",
        "table.check_format(full_check=True)",
        "table.check_format(full_check=False)",
        _in("test_foreign_tables"),
    ),
    Mutation(
        "sparse: pointers to rows may go back where the last is 0",
        'if kinds != {"i"} or (np.diff(table.indptr) < 0).any():',
        'if kinds != {"i"}:',
        _in("test_foreign_tables"),
    ),
]

SELECTION = [
    Mutation(
        "selection: the shift is charged once",
        "trial + 2.0 * _shift(search)",
        "trial + _shift(search)",
        _in("test_best_of"),
    ),
    Mutation(
        "selection: delta of one trial for all of them",
        "left = delta / search.mean_trials - search.slack",
        "left = delta - search.slack",
        _in("test_best_of"),
    ),
    Mutation(
        "search: beside other releases the shift is left out",
        "return _hull(shift + trial, delta)",
        "return _hull(trial, delta)",
        _in("test_best_of"),
    ),
    Mutation(
        "search: beside other releases one trial is composed",
        "delta = np.minimum(1.0, search.mean_trials * (np.array(most) + search.slack))",
        "delta = np.minimum(1.0, np.array(most) + search.slack)",
        _in("test_best_of"),
    ),
]

SCORED = [
    Mutation(
        "score: pairs across the parts are learned from",
        "return np.flatnonzero(first > end), np.flatnonzero(last <= end)",
        "return np.flatnonzero(last > end), np.flatnonzero(last <= end)",
        _in("test_held_out"),
    ),
    Mutation(
        "score: people who change together are put into both parts",
        "who = np.asarray(pairs) if together is None else np.asarray(together)[np.asarray(pairs)]",
        "who = np.asarray(pairs)",
        _in("test_held_out"),
    ),
    Mutation(
        "score: kappa is counted in what is learned from alone",
        "found = kappa_of(both)",
        "found = kappa_of(used.subset(learned))",
        _in("test_held_out"),
    ),
    Mutation(
        "score: pairs that are declared to change together may be in both parts",
        'if learner.kappa != "auto":',
        "if False:",
        _in("test_held_out"),
    ),
    Mutation(
        "score: what it costs those who are scored is not counted",
        "full = [tuple(one for one in part if _is_full(one, cost.records)) for part in event.parts]",
        "full = [tuple(one for one in part if _is_full(one, cost.records)) for part in event.parts[:1]]",
        _in("test_parallel"),
    ),
    Mutation(
        "parts: beside other releases one of them is composed",
        "return (*max(full, key=mu_squared), *others)",
        "return max(full, key=mu_squared)",
        _in("test_parallel"),
    ),
    Mutation(
        "parts: the smaller Gaussian covers the larger",
        "(*max(full, key=mu_squared)",
        "(*min(full, key=mu_squared)",
        _in("test_parallel"),
    ),
    Mutation(
        "parts: a sampled sum is covered as if its part had none",
        "others = [one for part in event.parts for one in part if not _is_full(one, cost.records)]",
        "others = [one for part in event.parts for one in part if not isinstance(one, GaussianEvent)]",
        _in("test_parallel"),
    ),
    Mutation(
        "parts: a fit cut in two passes for a fit and its score",
        "if named != [False] * (len(named) - 1) + [True] or len(named) < 2:",
        "if len(named) < 2:",
        _in("test_held_out"),
    ),
    Mutation(
        "parts: without a list of releases any events pass for parts",
        'elif {"releases", "score"} & set(c.plan) and _events_of_plan(c, releases) != events:',
        'elif "releases" in c.plan and _events_of_plan(c, releases) != events:',
        _in("test_held_out"),
    ),
    Mutation(
        "score: a resumed fit draws it anew",
        "Engine(planned.prepared.records.used, self.noise, checkpoint=saved)",
        "Engine(planned.prepared.records.used, self.noise)",
        _in("test_held_out"),
    ),
]

CELLS = [
    Mutation(
        "cells: true is spelt otherwise in a column of several kinds",
        'return "true" if value else "false"',
        "return str(value)",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: a date among texts is read as the texts alone are",
        "seconds = pc.coalesce(by_format, seconds)",
        "seconds = by_format",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: true among texts is no number",
        "for word, number in _TRUTHS:",
        "for word, number in ():",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: a spreadsheet writes cells of several kinds in its own way",
        "return pa.array(map(cell_text, values), pa.string())",
        "return pa.array([None if one is None else str(one) for one in values], pa.string())",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: a class of one kind is spelt otherwise than among others",
        'texts = [(cell_text(one) or "").strip() or None for one in values]',
        "texts = [None if one is None else str(one).strip() or None for one in values]",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: what NumPy calls true is spelt otherwise",
        'value = value.item() if hasattr(value, "item") else value',
        "value = value",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: a day of a time zone is that of Greenwich in a column of times alone",
        "cells = pc.local_timestamp(cells)",
        "cells = cells.cast(pa.timestamp(kind.unit))",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: the only cell of an empty column stops the run, as most of it",
        "if 2 * one.unreadable > n_rows]",
        "if 2 * one.unreadable > n_rows - one.missing]",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: an infinity is written otherwise among numbers alone",
        "if not np.isinf(found).any():",
        "if found is not None:",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: without a schema a row with a cell that is no number counts as zeros",
        "return joined.emptied(lost) if lost.any() and joined.labels is not None else joined",
        "return joined",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: a gap as pandas writes it stops the run",
        'type(value).__name__ == "NAType" or value != value',
        "value != value",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: what Python cannot write as text stops the run",
        "except Exception:  # a year above 9999",
        "except ZeroDivisionError:  # a year above 9999",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: one complex number makes texts of all",
        "if isinstance(value, complex) and not value.imag:",
        "if False:",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: half a letter stops the run",
        'text.encode(errors="backslashreplace").decode()',
        "text",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: pyarrow guesses the kind of categories of several kinds",
        "mixed = mixed or (_is_loose(listed)",
        "mixed = mixed or (False",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: a text in a list of rows makes texts of all",
        'given = table if hasattr(table, "dtype") else np.array(table, dtype=object)',
        "given = table",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: the longest decimal changes the others' last digit, by a schema",
        "if pa.types.is_decimal(cells.type):  # whose",
        "if False:  # whose",
        _in("test_one_cell"),
    ),
    Mutation(
        "levels: two pairs share a row, whose ids read alike when they are joined",
        "if any(BETWEEN in text for column in texts for text in column):",
        "if False:",
        _in("test_by_example"),
    ),
    Mutation(
        "cells: a label that cannot be read stops a list of links",
        "if 2 * len(null) > len(found):",
        "if null:",
        _in("test_layouts"),
    ),
    Mutation(
        "cells: a label says where labels stand",
        "first = _most(_spelled(words[0]) in _LINKS for words in parts if len(words) > 2)",
        "first = _spelled(parts[0][0]) in _LINKS",
        _in("test_layouts"),
    ),
    Mutation(
        "cells: what other libraries say of a cell is in an output",
        "issubclass(category, PrivateNote) or not issubclass(category, PairveilWarning)",
        "issubclass(category, PrivateNote)",
        _in("test_row_order"),
    ),
    Mutation(
        "cells: pandas spells durations in its own way",
        "return datetime.timedelta.__str__(value)",
        "return str(value)",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: one cell of bytes makes no label of all",
        "words = [self._code(cell_text(one)) for one in encoded.dictionary]",
        "words = list(map(self._code, encoded.dictionary.cast(pa.large_string()).to_pylist()))",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: one cell that is not UTF-8 makes no labels of all",
        "            encoded = values.dictionary_encode()\n",
        "            values.validate(full=True)\n            encoded = values.dictionary_encode()\n",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: one cell that is not UTF-8 stops a column",
        "check_utf8=False,",
        "",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: one cell decides whether two columns of one name are refused",
        "if not any(_NUMBER.fullmatch(name) for name in names):",
        "if not headless:",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: a label ends the line that it is in",
        'in enumerate(read_text(path).split("\\n"), start=1):',
        "in enumerate(read_text(path).splitlines(), start=1):",
        _in("test_layouts"),
    ),
    Mutation(
        "cells: a list in the place of a class stops the run",
        "place.get(one, NO_CLASS) if _is_plain(one) else NO_CLASS",
        "place.get(one, NO_CLASS)",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: one text in a list of classes makes texts of all",
        "values = one_by_one(y)",
        "values = np.asarray(y)",
        _in("test_one_cell"),
    ),
    Mutation(
        "cells: the list of what is wrong is written into a release",
        "if any((file.parent / name).exists() for name in ARTEFACT_FILES):",
        "if False:",
        _in("test_dirty_files"),
    ),
]

VERDICT = [
    Mutation(
        "verdict: the headline forgets the ledger's other releases",
        "parts.append(1.0 if total is None or beside is not None else total)",
        "parts.append(0.5)",
        _in("test_verdict"),
    ),
    Mutation(
        "verdict: a release without a total is headlined alone",
        "parts.append(1.0 if total is None or beside is not None else total)",
        "parts.append(0.5 if total is None or beside is not None else total)",
        _in("test_verdict"),
    ),
    Mutation(
        "verdict: a seeded fit headlines its promise",
        'reasons += [UNFIT[why]["remedy"] for why in certificate.unfit()]',
        "reasons += []",
        _in("test_verdict"),
    ),
    Mutation(
        "verdict: a certificate that does not hold headlines its promise",
        'reasons += [VERDICT["not_valid"].format("; ".join(found))] if found else []',
        "reasons += []",
        _in("test_verdict"),
    ),
    Mutation(
        "verdict: what was left out is told as if it had been used",
        'full, group = _full_kappa(certificate), certificate.group_of("relationship")',
        'full, group = 1, certificate.group_of("relationship")',
        _in("test_verdict"),
    ),
    Mutation(
        "verdict: a bound is rounded to the nearest",
        "return None if share > WEAK else math.ceil(100 * share - 1e-9)",
        "return None if share > WEAK else round(100 * share)",
        _in("test_verdict"),
    ),
    Mutation(
        "delta: one that shows a record outright is taken",
        "if certificate.delta < 1 / n:",
        "if certificate.delta < 1:",
        _in("test_verdict"),
    ),
    Mutation(
        "accounting: a ledger's best guess forgets what discrete noise costs",
        "best_guess_of_parts(parts, delta_slack=slack)",
        "best_guess_of_parts(parts)",
        _in("test_verdict"),
    ),
]

COPIES = [
    Mutation(
        "state: all passes run on one module",
        "return _copied(Pass(self.module, self.records))",
        "return Pass(self.module, self.records)",
        _in("test_memory"),
    ),
    Mutation(
        "state: what a module keeps of random inputs is not compared",
        "differ = [name for name in {**first, **left} if first.get(name) != left.get(name)]",
        "differ = []",
        _in("test_memory"),
    ),
    Mutation(
        "state: closures and globals are not looked into",
        "yield from _of_function(value)",
        "yield from ()",
        _in("test_memory"),
    ),
    Mutation(
        "state: rows may take a little of each other",
        "return bool(torch.equal(one.nan_to_num(), other.nan_to_num()))",
        "return bool(torch.allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True))",
        _in("test_gradients"),
    ),
    Mutation(
        "copies: an engine is copied with what it may still answer",
        'raise TypeError("an engine cannot be copied or pickled: its answers were charged once")',
        "return Engine, (self._backend, self._noise)",
        _in("test_trainer"),
    ),
    Mutation(
        "copies: an engine goes on in a forked process",
        "if os.getpid() != self._process:\n            raise InputError(\n"
        '                "these answers were charged in another',
        'if False:\n            raise InputError(\n                "these answers were charged in another',
        _in("test_trainer"),
    ),
    Mutation(
        "copies: processes of one fit may hold different pairs",
        "if len({one for one, _ in found}) > 1:",
        "if not found:",
        _in("test_ranks"),
    ),
    Mutation(
        "copies: a fitted search is pickled with its learners' features",
        "return _without_owners(state) if fitted else state",
        "return state",
        _in("test_search"),
    ),
    Mutation(
        "copies: a search shows the features that its grid tries",
        "return _without_tables(found) if _is_shown() else found",
        "return found",
        _in("test_search"),
    ),
]

PARTIES = [
    Mutation(
        "parties: a mask is used for every answer",
        'nonce = bytes(4) + number.to_bytes(12, "little")',
        "nonce = bytes(16)",
        _in("test_party_sums"),
    ),
    Mutation(
        "parties: two fits under one roster share their masks",
        "secret = HKDF(SHA256(), 32, salt, about).derive(shared)",
        "secret = HKDF(SHA256(), 32, None, about).derive(shared)",
        _in("test_party_sums"),
    ),
    Mutation(
        "parties: who was told another total has the masks of the others",
        "self._masks.heard(told)",
        "pass",
        _in("test_party_sums"),
    ),
    Mutation(
        "parties: who was asked for another noise has the masks of the others",
        "self._masks.heard(asked)",
        "pass",
        _in("test_party_sums"),
    ),
    Mutation(
        "parties: who was told another roster has the masks and the fingerprint of the others",
        "hashlib.sha256(wire.as_sent(terms) + wire.as_sent(roster))",
        "hashlib.sha256(terms.session)",
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: a coordinator names a file that a party reads",
        "if set(terms.options) & set(_OWN):",
        "if False:",
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: whoever carries the messages may be the coordinator",
        "if not hmac.compare_digest(hashlib.sha256(seen).digest(), invitation.pin):",
        "if not seen:",
        _in("test_flower", "test_party_commands"),
    ),
    Mutation(
        "parties: a ledger that is named in the place of a socket is removed",
        "if place.is_socket():",
        "if place.exists():",
        _in("test_flower"),
    ),
    Mutation(
        "parties: one party adds no noise",
        "if self._shares is not None:",
        "if self._shares is not None and self._masks._secrets[-1][1]:",
        _in("test_party_sums"),
    ),
    Mutation(
        "parties: the noise of all is enough only if nobody takes its own off",
        "scale / math.sqrt(shares)",
        "scale / math.sqrt(shares + 1)",
        _in("test_party_sums"),
    ),
    Mutation(
        "parties: a total is told after a party has left",
        "            total += self._share(name, channel, size)\n",
        "            try:\n                total += self._share(name, channel, size)\n"
        "            except PartyError:\n                continue\n",
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: the tails of the noise are not kept free",
        "if sums + TAILS * n_parties * deviation / math.sqrt(shares) >= 2.0**63:",
        "if sums >= 2.0**63:",
        _in("test_party_sums"),
    ),
    Mutation(
        "parties: a sum of discrete Gaussians is charged as one",
        "apart = n_samples * 5.0 * (shares - 1)",
        "apart = n_samples * 0.0 * (shares - 1)",
        _in("test_party_sums"),
    ),
    Mutation(
        "parties: a party sums at whatever noise the coordinator states",
        "if not scale <= asked.scale <= scale * (1 + 10 * MARGIN):",
        "if not asked.scale <= scale * (1 + 10 * MARGIN):",
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: somebody in the pairs of all parties is counted at one",
        'person = sum(one["person"] for one in kappas)',
        'person = max(one["person"] for one in kappas)',
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: a relationship through all parties is counted as the sum of its parts",
        '"relationship": person, "person": person}',
        '"relationship": sum(one["relationship"] for one in kappas), "person": person}',
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: two people of different parties never have the two largest b",
        'found["relationship"] = max(found["relationship"], most[-2])',
        'found["relationship"] = max(found["relationship"], 1)',
        _in("test_party_fits"),
    ),
    Mutation(
        "trust: a file that lies in the folder says whose code a search runs",
        'check_learner(str(name), typed, "tune")',
        "pass",
        _in("test_learners"),
    ),
    Mutation(
        "parties: one person under two spellings is two people",
        "hmac.new(key, spelt(str(one)).encode(",
        "hmac.new(key, str(one).encode(",
        _in("test_party_fits"),
    ),
    Mutation(
        "recount: what several parties selected is selected again from all of it",
        """    if c.parties is not None:
        return "each of several""",
        """    if False:
        return "each of several""",
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: a certificate may forget that a coordinator saw totals",
        'if c.for_release and (c.noise_source == PARTIES_NOISE) != (parties.noise == "parties"):',
        "if False:",
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: people hashed with two keys are found at no two parties",
        "if one.same_key != joined[0].same_key:",
        "if False:",
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: each draws the share of a fit without colluders",
        "shares = terms.n_parties - terms.colluders if",
        "shares = terms.n_parties if",
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: a ledger is charged one party's kappas",
        "costs=PAIRS.costs({unit: roster.kappas_used[unit] for unit in UNITS}),",
        "costs=PAIRS.costs({unit: roster.who[0].kappas[unit] for unit in UNITS}),",
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: a seed that the coordinator knows takes the noise off",
        'terms.options.get("random_state") is None',
        'terms.options.get("random_state") != "none"',
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: rows of single precision are summed under the noise of doubles",
        "sums = backend_for(_in_doubles(own.used)",
        "sums = backend_for(own.used",
        _in("test_party_fits"),
    ),
    Mutation(
        "parties: nobody asks whether 64 bits hold the sums and the noise",
        "check_room(plan, len(parties.who), shares)",
        "pass",
        _in("test_party_fits"),
    ),
]

MUTATIONS = [
    *SENSITIVITY, *CLIP, *NOISE, *CHOICES, *KAPPA, *EVENTS, *ACCOUNTING, *COUNTS, *READING, *SELECTION,
    *SCORED, *CELLS, *VERDICT, *COPIES, *PARTIES,
]  # fmt: skip
