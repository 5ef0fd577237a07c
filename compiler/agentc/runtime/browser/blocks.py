"""Texts of a page: where each stands, how large, in which colours. Measured in the browser.

The script calls methods by their prototypes: a page can give its parts the names of a document's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_MOST, _LONGEST = 1000, 500

MEASURE = """(() => {
  const of = (proto, name) => Object.getOwnPropertyDescriptor(proto, name).get;
  const root = of(Document.prototype, "documentElement").call(document);
  if (!root) return [];
  const parent = of(Node.prototype, "parentElement"), text = of(Node.prototype, "textContent");
  const colour = (value) => (value.match(/[0-9.]+/g) || []).map(Number);
  const behind = (element) => {
    for (let at = element; at; at = parent.call(at)) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const out = [];
  const walk = Document.prototype.createTreeWalker.call(document, root, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode()) && out.length < MOST; ) {
    const said = text.call(node).replace(/\\s+/g, " ").trim();
    if (!said) continue;
    const range = Document.prototype.createRange.call(document);
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.width < 1 || box.height < 1) continue;
    const element = parent.call(node), style = getComputedStyle(element);
    out.push([said.slice(0, LONGEST), box.x, box.y, box.width, box.height,
              colour(style.color).slice(0, 3), behind(element), parseFloat(style.fontSize)]);
  }
  return out;
})()""".replace("MOST", str(_MOST)).replace("LONGEST", str(_LONGEST))


class TextBlock(NamedTuple):
    """Pixels from the page's upper left; colours are red, green, blue, 0 to 255; `background` is
    the nearest one behind the text."""

    text: str
    x: float
    y: float
    width: float
    height: float
    color: tuple[int, int, int]
    background: tuple[int, int, int]
    size: float


def read_blocks(value: Any) -> tuple[TextBlock, ...]:
    """Of what `MEASURE` gave. Raises ValueError, TypeError."""
    return tuple(
        TextBlock(
            str(text),
            float(x),
            float(y),
            float(width),
            float(height),
            _colour(color),
            _colour(background),
            float(size),
        )
        for text, x, y, width, height, color, background, size in value or ()
    )


def _colour(parts: Any) -> tuple[int, int, int]:
    red, green, blue = (round(float(part)) for part in parts)
    return red, green, blue
