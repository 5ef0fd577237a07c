"""The generated sections and the picture of ARCHITECTURE.md: the levels that a spec passes on its
way to a program, with the passes that work on each, and the packages in their layers.

The layers are those that import-linter checks the code against (pyproject.toml); what a package
is for is the first sentence of its docstring. A pass that is in no level, or twice, is an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import tomllib

from agentc.front.read_module import FRONT_PASSES
from agentc.passes import PASSES


@dataclass(frozen=True, slots=True)
class Level:
    """A form of the experiment. `made_by` turns the level above into this one, `passes` work on
    it; of both, names of passes are checked against the tuples."""

    name: str
    type: str
    where: str
    made_by: tuple[str, ...]
    passes: tuple[str, ...] = ()


LEVELS: tuple[Level, ...] = (
    Level("spec text", "Source", "agentc.diagnostics.diagnostic", ("read_named",)),
    Level(
        "positioned tree", "Node", "agentc.source.tree", ("load_text",),
        ("use_templates", "choose_scale"),
    ),
    Level("declarations", "Spec", "agentc.syntax.nodes", ("read_syntax",)),
    Level(
        "module of stages", "Module", "agentc.ir.module", ("read_cells", "join"),
        ("warn_of_unused", "infer_artifacts", "choose_backends", "check_settings"),
    ),
    Level("drafts", "JobDraft, LeaseDraft", "agentc.backend_api.draft", ("a backend's lowering",)),
    Level(
        "plan of jobs", "Plan", "agentc.plan.job", ("lower",),
        ("assign_keys", "share_servers", "fuse_servers", "forecast_memory", "finish"),
    ),
    Level("plan.json, Snakefile", "text", "agentc.emit.directory", ("compile_to",)),
    Level("wrapper", "Wrapper", "agentc.runtime.wrapper", ("Snakemake",)),
    Level("program", "Job", "agentc.program.job", ("Supervisor",)),
)  # fmt: skip


def levels() -> tuple[Level, ...]:
    """All of them, first to last. Raises ValueError where their passes are not those of the code,
    each once."""
    passes = [each.__name__ for each in (*FRONT_PASSES, *PASSES)]
    placed = [name for level in LEVELS for name in _named(level, set(passes))]
    if sorted(placed) != sorted(passes):
        wrong = sorted(set(placed) ^ set(passes)) or sorted(
            {n for n in placed if placed.count(n) > 1}
        )
        raise ValueError(f"LEVELS and the tuples of passes differ in: {', '.join(wrong)}")
    return LEVELS


def _named(level: Level, passes: set[str]) -> tuple[str, ...]:
    return (*(name for name in level.made_by if name in passes), *level.passes)


def layers_of(root: Path) -> tuple[tuple[str, ...], ...]:
    """The packages of the compiler, from the top to the ground."""
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = document["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each.get("containers") == ["agentc"])
    return tuple(tuple(name.strip() for name in layer.split("|")) for layer in layers)


def architecture_page(root: Path) -> str:
    """ARCHITECTURE.md as it stands, with its generated sections as they should be."""
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    sections = {
        "levels": _levels(),
        "layers": _layers(layers_of(root)),
        "backends": _groups(root / "backends" / "agentc_backends"),
    }
    for name, lines in sections.items():
        text = with_section(text, name, lines)
    return text


def packages_page(root: Path) -> str:
    """docs/design/packages.md as it stands, with its table as it should be."""
    text = (root / "docs" / "design" / "packages.md").read_text(encoding="utf-8")
    table = _packages(root / "compiler" / "agentc", layers_of(root))
    return with_section(text, "packages", table)


def with_section(text: str, name: str, lines: list[str]) -> str:
    """The text with other lines between `<!-- generated: NAME -->` and `<!-- end -->`. Raises
    ValueError where it has no such section."""
    pattern = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    body = "\n".join(lines) + "\n"
    text, count = pattern.subn(lambda found: found[1] + body + found[2], text)
    if count != 1:
        raise ValueError(f"{count} sections `{name}`, not one")
    return text


def _levels() -> list[str]:
    lines = ["| level | as a type | made by | passes that work on it |", "|---|---|---|---|"]
    for level in levels():
        passes = ", ".join(f"`{name}`" for name in level.passes)
        made = ", ".join(level.made_by)
        lines.append(f"| {level.name} | `{level.type}` in `{level.where}` | {made} | {passes} |")
    return lines


def _layers(layers: tuple[tuple[str, ...], ...]) -> list[str]:
    lines = ["| layer | packages |", "|---|---|"]
    for number, layer in zip(range(len(layers), 0, -1), layers, strict=True):
        lines.append(f"| {number} | {', '.join(f'`{name}`' for name in layer)} |")
    return lines


def _packages(folder: Path, layers: tuple[tuple[str, ...], ...]) -> list[str]:
    lines = ["| layer | package | its job |", "|---|---|---|"]
    for number, layer in zip(range(len(layers), 0, -1), layers, strict=True):
        for name in layer:
            path = folder / name
            source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            lines.append(f"| {number} | `{name}` | {first_sentence(source)} |")
    return lines


def _groups(folder: Path) -> list[str]:
    lines = ["| group | its job |", "|---|---|"]
    for path in sorted(each for each in folder.iterdir() if (each / "__init__.py").is_file()):
        lines.append(f"| `{path.name}` | {first_sentence(path / '__init__.py')} |")
    return lines


def first_sentence(source: Path) -> str:
    """Of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    end = re.search(r"\.(?=\s+[A-Z`])", paragraph)
    return (paragraph if end is None else paragraph[: end.end()]).replace("|", "\\|")


_STYLE = """\
svg { --box: #ffffff; --line: #c9ced6; --edge: #8b95a3; --text: #1b2027; --quiet: #5c6673;
  --back: #f4f6f8; font: 13px system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
@media (prefers-color-scheme: dark) { svg { --box: #1c2128; --line: #3b434e; --edge: #77828f;
  --text: #e5e9ef; --quiet: #9aa5b3; --back: #14171c; } }
.back { fill: var(--back); } .box { fill: var(--box); stroke: var(--line); }
text { fill: var(--text); } .title { font-size: 15px; font-weight: 600; }
.name { font-weight: 600; } .quiet { fill: var(--quiet); font-size: 11px; }
.edge { stroke: var(--edge); stroke-width: 1.4; } .tip { fill: var(--edge); }"""

_LEFT, _WIDE, _HIGH, _STEP, _TOP = 24, 400, 44, 74, 56
_RIGHT, _LAYER_WIDE, _LAYER_STEP = 470, 466, 46
_LAYER_HIGH = 36


def picture(layers: tuple[tuple[str, ...], ...]) -> str:
    """The SVG's text."""
    left = list(_level_boxes())
    right = list(_layer_boxes(layers))
    height = _TOP + max(len(levels()) * _STEP, len(layers) * _LAYER_STEP) + 16
    width = _RIGHT + _LAYER_WIDE + 24
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="Levels and layers of agentc">',
            f"<style>\n{_STYLE}\n</style>",
            f'<rect class="back" width="{width}" height="{height}"/>',
            _text(_LEFT, 32, "From a spec to a program", "title"),
            _text(_RIGHT, 32, "Packages: each imports only what is below it", "title"),
            *left,
            *right,
            "</svg>\n",
        ]
    )


def _level_boxes() -> Iterator[str]:
    for number, level in enumerate(levels()):
        y = _TOP + number * _STEP
        if number:
            x, above = _LEFT + 28, y - (_STEP - _HIGH)
            yield f'<line class="edge" x1="{x}" y1="{above}" x2="{x}" y2="{y - 6}"/>'
            yield f'<path class="tip" d="M{x - 4},{y - 7} h8 l-4,7 z"/>'
            yield _text(x + 12, y - 11, ", ".join(level.made_by), "quiet")
        yield _box(_LEFT, y, _WIDE, _HIGH)
        yield _text(_LEFT + 12, y + 18, level.name, "name")
        yield _text(_LEFT + 12, y + 34, ", ".join(level.passes) or level.where, "quiet")


def _layer_boxes(layers: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    for number, layer in enumerate(layers):
        y = _TOP + number * _LAYER_STEP
        # Longer names get wider boxes.
        share = (_LAYER_WIDE - 6 * (len(layer) - 1)) / sum(len(name) + 2 for name in layer)
        x: float = _RIGHT
        for name in layer:
            wide = round(share * (len(name) + 2), 1)
            yield _box(x, y, wide, _LAYER_HIGH)
            yield _text(x + wide / 2, y + 22, name, "name", middle=True)
            x += wide + 6


def _box(x: float, y: float, wide: float, high: float) -> str:
    size = f'width="{wide:g}" height="{high:g}"'
    return f'<rect class="box" x="{x:g}" y="{y:g}" {size} rx="5"/>'


def _text(x: float, y: float, words: str, style: str, *, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text class="{style}" x="{x:g}" y="{y:g}"{anchor}>{escape(words)}</text>'
