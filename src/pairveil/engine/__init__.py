"""The only code that sums private contents: it answers the queries of a plan, and nothing else.

A *statistic* says what a record contributes and how far that can move the sum; a *plan* says which queries
are asked; the *engine* sums, adds noise and counts. ``backends`` says where the records lie, ``kernels``
holds the compiled loops.
"""
