"""The picture at the top of the README: the first screen of the demo's report, drawn by Chromium.

Run: ``pairveil demo --out demo-out`` and then
``python -m tools.readme_picture demo-out docs/figures/first-screen.png``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, PngImagePlugin

from pairveil.privacy.certificate import Certificate
from pairveil.privacy.verdict import verdict

SCREEN = "1280,820"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def headline(folder: Path) -> str:
    """What the first screen says of this release, in a sentence; it follows from the certificate."""
    text = (folder / "certificate.json").read_text(encoding="utf-8")
    return verdict(Certificate.from_json(text)).headline


def described(picture: Path) -> str:
    """The sentence that a picture carries: alternative text must have its numbers."""
    with Image.open(picture) as image:
        return str(image.info["Description"])


def draw(folder: Path, picture: Path) -> None:
    """Photograph the report of a release, in 128 colours."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is installed")
    with tempfile.TemporaryDirectory() as scratch:
        shot = Path(scratch) / "screen.png"
        words = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        words += [
            f"--user-data-dir={scratch}/profile",
            f"--window-size={SCREEN}",
            f"--screenshot={shot}",
        ]
        page = (folder / "report.html").resolve().as_uri()
        subprocess.run([*words, page], check=True, capture_output=True, timeout=120)
        with Image.open(shot) as image:
            few = image.convert("RGB").quantize(128)
    said = PngImagePlugin.PngInfo()
    said.add_text("Description", headline(folder))
    few.save(picture, pnginfo=said, optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
