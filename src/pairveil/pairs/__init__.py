"""What comes in: people's features, the pairs between them, and choosing pairs."""
