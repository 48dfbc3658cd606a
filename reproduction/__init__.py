"""The paper rerun: published algorithms, figures, and a verdict on each of its claims. Not installed."""
