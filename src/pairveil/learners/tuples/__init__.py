"""Metrics from relative comparisons: 'a is closer to p than to n', in triplets and larger tuples."""
