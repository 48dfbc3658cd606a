"""``python -m pairveil`` is the command ``pairveil``."""

import os
import sys

if __name__ == "__main__":
    # ``-m`` puts the working directory first: a module that lies there would stand in for any other.
    if sys.path[:1] == [os.getcwd()]:
        del sys.path[0]

    from pairveil.cli.app import main

    main()
