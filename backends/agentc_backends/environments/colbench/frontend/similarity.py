"""How alike two pages look, 0 to 1: the mean of four likenesses of their pictures and texts.

Each alone is weak (structure gives a blank page .86 of an ordinary one), and none is the paper's:
that is the cosine of CLIP's features (`cosine.py`), which needs weights. So this is called
`composite`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import imagehash
import numpy as np
from PIL import Image
from skimage.metrics import structural_similarity

from agentc.runtime.browser.blocks import TextBlock
from agentc.runtime.browser.render import WIDTH, WINDOW_HEIGHT, Rendered
from agentc_backends.environments.colbench.frontend.matching import considered, match_blocks

PARTS = ("ssim", "histogram", "phash", "blocks")
_LEVELS = 8
"""Of each colour: 512 bins."""


def composite(wanted: Rendered, made: Rendered) -> dict[str, float]:
    """The parts of two pages that have pictures; their mean is the similarity."""
    first, second = _same_size(_picture(wanted.png), _picture(made.png))
    return {
        "ssim": _structure(first, second),
        "histogram": _colours(np.asarray(first), np.asarray(second)),
        "phash": 1.0 - float(imagehash.phash(first) - imagehash.phash(second)) / 64,
        "blocks": text_likeness(wanted.blocks, made.blocks),
    }


def mean(parts: dict[str, float]) -> float:
    return sum(parts[name] for name in PARTS) / len(PARTS)


def small_picture(png: bytes, width: int = 320, height: int = 400) -> bytes:
    """A JPEG of a page's upper part, for people."""
    picture = _picture(png)
    scaled = picture.resize((width, max(1, round(picture.height * width / picture.width))))
    stream = io.BytesIO()
    scaled.crop((0, 0, width, min(height, scaled.height))).save(stream, "JPEG", quality=60)
    return stream.getvalue()


def text_likeness(wanted: Sequence[TextBlock], made: Sequence[TextBlock]) -> float:
    """The mean of four shares: area of texts that are in both pages, likeness of these texts, of
    their places and of their colours."""
    wanted, made = considered(wanted), considered(made)
    if not wanted and not made:
        return 1.0
    pairs = [(wanted[p.wanted], made[p.made], p.likeness) for p in match_blocks(wanted, made)]
    if not pairs:
        return 0.0
    both = sum(_area(one) + _area(other) for one, other, _ in pairs)
    area = both / (sum(map(_area, wanted)) + sum(map(_area, made)))
    text = sum(likeness for *_, likeness in pairs) / len(pairs)
    place = sum(_place(one, other) for one, other, _ in pairs) / len(pairs)
    colour = sum(_colour(one, other) for one, other, _ in pairs) / len(pairs)
    return (area + text + place + colour) / 4


def _picture(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


def _same_size(one: Image.Image, other: Image.Image) -> tuple[Image.Image, Image.Image]:
    """Both on white as large as both."""
    size = (max(one.width, other.width), max(one.height, other.height))
    whites = []
    for picture in (one, other):
        white = Image.new("RGB", size, "white")
        white.paste(picture, (0, 0))
        whites.append(white)
    return whites[0], whites[1]


def _structure(one: Image.Image, other: Image.Image) -> float:
    """SSIM (Wang et al. 2004) of the luminance, at a quarter of the size."""
    small = (max(7, one.width // 4), max(7, one.height // 4))
    grey = [np.asarray(each.convert("L").resize(small)) for each in (one, other)]
    compare: Any = structural_similarity
    return max(0.0, float(compare(grey[0], grey[1], data_range=255)))


def _colours(one: Any, other: Any) -> float:
    """What histograms of 512 colours have in common; both pictures are as large."""
    return float(np.minimum(_histogram(one), _histogram(other)).sum() / (one.size // 3))


def _histogram(pixels: Any) -> Any:
    step = 256 // _LEVELS
    levels = (pixels // step).astype(np.int64)
    bins = (levels[..., 0] * _LEVELS + levels[..., 1]) * _LEVELS + levels[..., 2]
    return np.bincount(bins.ravel(), minlength=_LEVELS**3)


def _area(block: TextBlock) -> float:
    return block.width * block.height


def _place(one: TextBlock, other: TextBlock) -> float:
    across = abs(one.x + one.width / 2 - other.x - other.width / 2) / WIDTH
    down = abs(one.y + one.height / 2 - other.y - other.height / 2) / WINDOW_HEIGHT
    return max(0.0, 1.0 - max(across, down))


def _colour(one: TextBlock, other: TextBlock) -> float:
    return 1.0 - sum(abs(a - b) for a, b in zip(one.color, other.color, strict=True)) / (3 * 255)
