"""The generated sections of ARCHITECTURE.md (levels, layers, groups) and docs/design/packages.md.

The layers are those that import-linter holds the code to (pyproject.toml), what a package is for is
the first sentence of its docstring. `architecture_picture.py` draws both.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import tomllib

from agentc.reference.levels import levels


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
