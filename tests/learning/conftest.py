"""Makes the graphs of `learners.py` importable next to these tests (importlib import mode)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
