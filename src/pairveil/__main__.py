"""``python -m pairveil`` is the command ``pairveil``."""

from pairveil.cli.app import main

if __name__ == "__main__":
    main()
