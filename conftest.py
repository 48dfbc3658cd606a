"""For pytest as a whole: one thread a process; modules of an extra that is absent are not collected."""

import importlib.util
import os

# Tests run in as many processes as there are cores: a second thread in each would take time from the first.
# Tests of threads ask for them. Before numba is imported, which reads it once.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

needed = {"torch": "src/pairveil/deep/*", "flwr": "src/pairveil/parties/flower_app.py"}
collect_ignore_glob = [
    place for name, place in needed.items() if not importlib.util.find_spec(name)
]
