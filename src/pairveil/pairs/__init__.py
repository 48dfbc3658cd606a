"""What comes in: people's features, the pairs between them, and choosing pairs.

``read_features`` and ``read_pairs`` turn files and tables into a ``FeatureTable`` and a
``PairTable``; ``PairSet.join`` puts them together, and from there on people are row numbers.
"""
