"""The algorithms as the paper published them, for comparison: they do not give the epsilon they claim."""
