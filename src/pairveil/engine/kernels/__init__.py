"""Compiled loops: the clipped sums of many pairs as exact integers."""
