"""Digits written in matplotlib's own fonts and distorted at random: as many images as a network needs.

People are images, a person's class is the digit. Turned, sheared, scaled and moved about, two images of one
digit may share no pixel: Euclid and any linear metric see little of that, a convolution does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from pairveil._lazy import need

SIDE = 16
DIGITS = "0123456789"
FONTS = ("DejaVuSans", "DejaVuSerif", "DejaVuSansMono", "STIXGeneral", "cmr10", "cmss10", "cmtt10")
_DRAWN = 48  # pixels a side that a glyph is drawn with, before it is distorted


def draw_glyphs(n: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Images (n, 1, 16, 16) with values near 0 to 1, and their digits.

    Examples
    --------
    >>> images, digits = draw_glyphs(3, seed=0)
    >>> images.shape, digits.shape
    ((3, 1, 16, 16), (3,))
    """
    plates = torch.from_numpy(_plates())
    rng = np.random.default_rng(seed)
    digits, fonts = rng.integers(len(DIGITS), size=n), rng.integers(len(FONTS), size=n)
    images = np.empty((n, 1, SIDE, SIDE), dtype=np.float32)
    for start in range(0, n, 4096):
        now = slice(start, start + 4096)
        maps = torch.from_numpy(_maps(rng, len(digits[now])))
        grid = F.affine_grid(maps, [len(maps), 1, SIDE, SIDE], align_corners=False)
        drawn = F.grid_sample(plates[digits[now], fonts[now]], grid, align_corners=False)
        images[now] = drawn.numpy()
    images += rng.normal(scale=0.1, size=images.shape).astype(np.float32)
    return images, digits


def _maps(rng: np.random.Generator, n: int) -> NDArray[np.float32]:
    """Affine maps: a turn of up to 15 degrees, a shear, a size of 75 to 100 %, a place."""
    turn, shear = rng.uniform(-0.26, 0.26, n), rng.uniform(-0.2, 0.2, n)
    size = 1 / rng.uniform(0.75, 1.0, n)
    cos, sin = size * np.cos(turn), size * np.sin(turn)
    move = rng.uniform(-0.2, 0.2, (2, n))
    rows = [[cos, shear - sin, move[0]], [sin, cos, move[1]]]
    return np.moveaxis(np.array(rows), 2, 0).astype(np.float32)


def _plates() -> NDArray[np.float32]:
    """Every digit in every font, (10, fonts, 1, side, side)."""
    matplotlib = need("matplotlib", "plots", "Drawing glyphs")
    font_of = need("PIL.ImageFont", "plots", "Drawing glyphs").truetype
    image, draw = (
        need(f"PIL.{name}", "plots", "Drawing glyphs") for name in ("Image", "ImageDraw")
    )
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    plates = np.zeros((len(DIGITS), len(FONTS), 1, _DRAWN, _DRAWN), dtype=np.float32)
    for column, name in enumerate(FONTS):
        font = font_of(str(folder / f"{name}.ttf"), int(0.9 * _DRAWN))
        for row, digit in enumerate(DIGITS):
            plate = image.new("L", (_DRAWN, _DRAWN))
            draw.Draw(plate).text((_DRAWN / 2, _DRAWN / 2), digit, fill=255, font=font, anchor="mm")
            plates[row, column, 0] = np.asarray(plate, dtype=np.float32) / 255
    return plates
