"""For pytest as a whole: modules of an extra that is not installed are not collected."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["src/pairveil/deep/*"]
