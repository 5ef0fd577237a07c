"""The picture docs/images/overview.svg (a spec becomes a plan, and the plan jobs), and the
page reference/cost.md of the site: constants, machines and models of estimates."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agentc.cost.hardware import CORE_BANDWIDTH, CORE_FLOPS, DEFAULT_GPU, GPUS
from agentc.cost.parameters import PUBLISHED
from agentc.cost.past import OTHERWISE, REACH
from agentc.cost.quantities import PRIORS, RATE_FACTOR
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


def cost_page() -> str:
    """The page; [docs/design/cost.md] explains how its numbers enter."""
    lines = [
        "# Constants of the estimates",
        "",
        "[design/cost.md](../design/cost.md) explains how they enter. `factor` is the 90th "
        "percentile over the median; the 10th lies as far below.",
        f"Times have a factor of {RATE_FACTOR} more for what the formulas leave out.",
        "",
        "| constant | median | factor | unit | why |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {p.name} | {p.median:g} | {p.factor:g} | {p.unit} | {p.why} |" for p in PRIORS.values()
    ]
    lines += [
        "",
        "## Machines",
        "",
        f"A CPU core: {CORE_FLOPS / 1e9:g} GFLOP/s at its peak in fp32, {CORE_BANDWIDTH / 1e9:g} "
        f"GB/s of memory. GPUs, of which `{DEFAULT_GPU}` is meant when nobody says which, by the "
        "data sheets (dense):",
        "",
        "| type | bf16 or fp16, TFLOP/s | fp32, TFLOP/s | memory, GB/s | memory, GB |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {gpu.half:g} | {gpu.single:g} | {gpu.bandwidth:g} | {gpu.memory:g} |"
        for name, gpu in GPUS.items()
    ]
    lines += [
        "",
        "## Models",
        "",
        "Published counts of weights, by how a repository's name starts. Any other name is read "
        "for `7b` or `350m`, and else the model is taken for 7 billion weights, give or take.",
        "",
        "| model | weights |",
        "|---|---|",
    ]
    lines += [f"| {name} | {count / 1e9:.4g} billion |" for name, count in PUBLISHED.items()]
    lines += [
        "",
        "## Likeness",
        "",
        "The weight of a finished job is a product: for each trait below that differs, the number; "
        "for amounts, exp(-d^2 / 2) with d the distance of the logarithms over that of the factor.",
        "",
        "| trait | weight if it differs, or factor |",
        "|---|---|",
    ]
    lines += [f"| {name} | {weight:g} |" for name, weight in OTHERWISE.items()]
    lines += [f"| {name} | factor {2.718281828**reach:.0f} |" for name, reach in REACH.items()]
    return "\n".join(lines) + "\n"
