"""The paper rerun: its figures, and a verdict on each of its claims."""
