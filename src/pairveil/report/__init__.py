"""The page a person looks at."""
