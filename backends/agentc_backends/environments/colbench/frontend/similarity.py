"""Similarity of two pages, 0 to 1: `composite`, the mean of four measures of pictures and texts,
and the paper's cosine of an encoder's features of the pictures, which needs weights.

Each of the four is weak alone: structure gives a blank page .86 of an ordinary one."""

from __future__ import annotations

import io
import math
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import imagehash
import numpy as np
from PIL import Image
from skimage.metrics import structural_similarity

from agentc.runtime.browser.render import WIDTH, WINDOW_HEIGHT, Rendered, TextBlock

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


# The cosine, computed only where an encoder is declared.

_SIDE = 224
"""Of the black square that the released evaluator has in place of an answer that is none."""


class PictureEncoder(Protocol):
    """Called from several threads at a time."""

    def features(self, picture: bytes) -> Sequence[float]:
        """Raises EnvironmentFailure."""


class PictureCosine:
    """Of pictures with the wanted ones of tasks, whose features are asked for once."""

    def __init__(self, encoder: PictureEncoder) -> None:
        self._encoder = encoder
        self._wanted: dict[str, Future[Sequence[float]]] = {}
        self._lock = threading.Lock()

    def of(self, task_id: str, wanted: bytes, made: bytes) -> float:
        """Between 0 and 1, below which a reward cannot be. Raises EnvironmentFailure."""
        return cosine(self._features_of(task_id, wanted), self._encoder.features(made))

    def _features_of(self, task_id: str, wanted: bytes) -> Sequence[float]:
        with self._lock:
            found = self._wanted.get(task_id)
            mine = found is None
            if found is None:
                found = self._wanted[task_id] = Future()
        if mine:
            try:
                found.set_result(self._encoder.features(wanted))
            except BaseException as error:
                with self._lock:
                    del self._wanted[task_id]
                found.set_exception(error)
        return found.result()


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Exactly 1 of equal ones; what is opposed counts as what has nothing in common."""
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    squares = math.fsum(a * a for a in one) * math.fsum(b * b for b in other)
    return min(1.0, max(0.0, product / math.sqrt(squares))) if squares > 0 else 0.0


def black_square() -> bytes:
    """A PNG."""
    stream = io.BytesIO()
    Image.new("RGB", (_SIDE, _SIDE)).save(stream, "PNG")
    return stream.getvalue()


# Matching of the texts of two pages, greedily, the most similar first: after Si et al. 2024
# (Design2Code, arXiv 2403.03163), whose numbers are of other blocks than these.

LEAST = 0.5
"""Texts less alike than this are two."""
_MOST, _LETTERS = 100, 200
"""Blocks and letters that are looked at: a page of a model may have any number."""


@dataclass(frozen=True, slots=True)
class BlockMatch:
    """Positions of a pair, and how alike their texts are, 0 to 1."""

    wanted: int
    made: int
    likeness: float


def match_blocks(wanted: Sequence[TextBlock], made: Sequence[TextBlock]) -> list[BlockMatch]:
    """Each block at most once; ties by position."""
    pairs = _equal(considered(wanted), considered(made))
    taken, used = {pair.wanted for pair in pairs}, {pair.made for pair in pairs}
    left = [(i, _letters(each.text)) for i, each in enumerate(wanted[:_MOST]) if i not in taken]
    found: list[tuple[float, int, int]] = []
    for j, other in enumerate(made[:_MOST]):
        letters = _letters(other.text)
        for i, wished in left if j not in used else ():
            likeness = 2 * (wished & letters).total() / (wished.total() + letters.total())
            if likeness >= LEAST:
                found.append((-likeness, i, j))
    for negative, i, j in sorted(found, key=lambda each: (each[0], abs(each[1] - each[2]), each)):
        if i not in taken and j not in used:
            taken.add(i)
            used.add(j)
            pairs.append(BlockMatch(i, j, -negative))
    return sorted(pairs, key=lambda pair: pair.wanted)


def considered(blocks: Sequence[TextBlock]) -> Sequence[TextBlock]:
    """Those that are looked at."""
    return blocks[:_MOST]


def _equal(wanted: Sequence[TextBlock], made: Sequence[TextBlock]) -> list[BlockMatch]:
    """Equal texts, the first of one page with the first of the other."""
    places: dict[str, list[int]] = {}
    for j in reversed(range(len(made))):
        places.setdefault(made[j].text, []).append(j)
    return [
        BlockMatch(i, places[block.text].pop(), 1.0)
        for i, block in enumerate(wanted)
        if places.get(block.text)
    ]


def _letters(text: str) -> Counter[str]:
    """Its pairs of letters. They are alike by how many of them two texts share (Dice 1945), which
    takes the same time whatever a page says; matching of sequences does not."""
    shown = f" {text[:_LETTERS]} "
    return Counter(one + two for one, two in pairwise(shown))
