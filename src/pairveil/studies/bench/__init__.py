"""Measurements: utility, speed, scale, kappa."""
