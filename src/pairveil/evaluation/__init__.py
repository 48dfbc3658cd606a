"""How good a metric is, and which of several to take.

`scores` measures on public people: pair AUC, nearest neighbours, gain kept. `curve` measures on private
labelled pairs, which is charged: error rates and AUCs. `search` is the best of several private fits.
"""
