"""What is publicly known of each column, written down by hand, and how it makes rows of numbers.

It stands below ``data`` because those who receive a release apply it too, and nothing past the release
may import what touches training data.
"""
