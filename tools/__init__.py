"""What maintainers run: mutants, coverage by package, the release build. Not installed with pairveil."""
