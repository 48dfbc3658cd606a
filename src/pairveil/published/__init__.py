"""The paper's own algorithm and its rivals, as published, labelled as such."""
