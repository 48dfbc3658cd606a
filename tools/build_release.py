"""Build what is published: source distribution, wheel, and a bill of materials (CycloneDX JSON).

The bill lists what the wheel brings along where it is installed by itself: it is read off a fresh
environment, not off the developer's. So a release that does not install is never built either.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"


def run(*command: object) -> None:
    """Run a command in the repository; stop at the first that fails."""
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True)


def main() -> None:
    """Fill ``dist/``."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST)
    (wheel,) = DIST.glob("*.whl")
    name, version = wheel.name.split("-")[:2]
    bill = DIST / f"{name}-{version}.cdx.json"
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        fresh = Path(folder) / "bin" / "python"
        run(fresh, "-m", "pip", "install", "-q", "-c", "constraints.txt", f"{wheel}[learn]")
        run(fresh, "-m", "pip", "uninstall", "-q", "-y", "pip", "setuptools")
        run(
            sys.executable, "-m", "cyclonedx_py", "environment", fresh,
            "--pyproject", ROOT / "pyproject.toml", "--mc-type", "library",
            "--output-reproducible", "--output-format", "JSON", "--output-file", bill,
        )  # fmt: skip
    for made in sorted(DIST.iterdir()):
        print(f"{made.relative_to(ROOT)}  {made.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
