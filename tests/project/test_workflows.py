"""Actions are pinned by commit: a tag can be moved to other code."""

import re
from pathlib import Path

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"


def test_every_action_is_pinned_by_commit():
    used = [
        line
        for file in WORKFLOWS.glob("*.yml")
        for line in re.findall(r"uses:\s*(\S+)", file.read_text())
    ]
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) for one in used)
