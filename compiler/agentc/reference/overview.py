"""The picture docs/images/overview.svg: a spec becomes a plan, and the plan jobs.

Drawn in the colours of `agentc.graph.svg`, for light and dark backgrounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agentc.graph.svg import STYLE

_WIDTH, _HEIGHT = 930, 250
_BOX_WIDTH, _BOX_HEIGHT, _TOP = 220, 150, 44
_STEP = 335
_LEFTS = (20, 20 + _STEP, 20 + 2 * _STEP)
_MONOSPACED = "font-family: ui-monospace, monospace; font-size: 12px"
_BOXES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "spec",
        (
            "sft:",
            "  kind: sft",
            "  data: expert",
            "eto:",
            "  repeat: 2 rounds of",
            "    explore, pair, dpo",
        ),
    ),
    (
        "plan",
        (
            "expert    5e0078b8 stored",
            "sft       ceba5638 stored",
            "1.explore 0d32752a to run",
            "1.pairs   7a710232 to run",
            "1.dpo     8d14c1f5 to run",
            "...",
        ),
    ),
    (
        "jobs",
        (
            "trainers",
            "model servers",
            "environment servers",
            "rollouts, searches",
            "evaluations",
            "tables, claims, report",
        ),
    ),
)
_ARROWS = (("agentc", "compiles"), ("Snakemake", "runs"))


def overview_picture() -> str:
    """The SVG; it needs no other file."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="stages" width="{_WIDTH}"'
        f' height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        ' aria-label="A spec is compiled into a plan, whose jobs Snakemake runs">',
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{_WIDTH}" height="{_HEIGHT}"/>',
    ]
    for left, (title, texts) in zip(_LEFTS, _BOXES, strict=True):
        lines += _box(left, title, texts)
    for left, words in zip(_LEFTS[1:], _ARROWS, strict=True):
        lines += _arrow(left, words)
    lines += _store()
    return "\n".join([*lines, "</svg>", ""])


def _box(left: int, title: str, texts: Sequence[str]) -> list[str]:
    lines = [
        f'<text class="title" x="{left}" y="{_TOP - 12}">{title}</text>',
        f'<rect class="box" x="{left}" y="{_TOP}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}"'
        ' rx="6"/>',
    ]
    for number, text in enumerate(texts):
        height = _TOP + 26 + 22 * number
        lines.append(
            f'<text x="{left + 14}" y="{height}" style="{_MONOSPACED}" xml:space="preserve">'
            f"{escape(text)}</text>"
        )
    return lines


def _arrow(to: int, words: Sequence[str]) -> list[str]:
    start, end, height = to - _STEP + _BOX_WIDTH + 8, to - 8, _TOP + _BOX_HEIGHT / 2
    middle = (start + end) / 2
    return [
        f'<path class="edge" d="M {start} {height} H {end - 8}"/>',
        f'<path class="tip" d="M {end} {height} l -9 -5 v 10 z"/>',
        f'<text class="name" x="{middle}" y="{height - 10}" text-anchor="middle">{words[0]}</text>',
        f'<text class="quiet" x="{middle}" y="{height + 18}" text-anchor="middle">{words[1]}'
        "</text>",
    ]


def _store() -> list[str]:
    """Results go back to the plan: what the store has is not run again."""
    bottom = _TOP + _BOX_HEIGHT
    jobs, plan = _LEFTS[2] + _BOX_WIDTH / 2, _LEFTS[1] + _BOX_WIDTH / 2
    return [
        f'<path class="edge" d="M {jobs} {bottom} V {bottom + 28} H {plan} V {bottom + 9}"/>',
        f'<path class="tip" d="M {plan} {bottom} l -5 9 h 10 z"/>',
        f'<text class="quiet" x="{(jobs + plan) / 2}" y="{bottom + 46}" text-anchor="middle">'
        "results lie in a store under their keys: what is there is not run again</text>",
    ]
