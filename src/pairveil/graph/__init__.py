"""How correlated the pairs are: blocks in linear time, and kappa."""
