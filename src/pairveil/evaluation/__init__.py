"""How good a metric is, and which of several to take.

`scores` measures on public people: pair AUC, nearest neighbours, gain kept. `private_auc` and `error_curve`
measure on private labelled pairs, which is charged. `search` is the best of several private fits.
"""
