"""The page of a diagnostic code, as Markdown for docs/errors and as text for `agentc explain`: with
an example, a spec that gets it, and the same spec fixed (`diagnostics/examples/<code>`).

The messages in it are what agentc prints for the example, made when the page is.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import agentc.diagnostics
from agentc.backend_api import BackendTable
from agentc.compilation import compile_spec
from agentc.diagnostics import Code, Diagnostic, render_text
from agentc.reference.circumstances import CIRCUMSTANCES, Circumstance
from agentc.reference.codes import LAYERS
from agentc.reference.prose import WIDEST, folded, folded_output

_FOLDER = Path(agentc.diagnostics.__file__).parent / "examples"
_COMMAND = re.compile(r"# (agentc check .*)\n")


@dataclass(frozen=True, slots=True)
class CheckedSpec:
    """A spec of an example and what `command` prints about it. `text` is None where the fault is
    that there is no file."""

    command: str
    text: str | None
    diagnostics: tuple[Diagnostic, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Example:
    """`when` says what has to be so for the first to fail, "" mostly; `remedy` what to do where
    that is not in the spec (then `fixed` is None). `beside` are files that the specs use."""

    failing: CheckedSpec
    fixed: CheckedSpec | None
    when: str = ""
    remedy: str = ""
    beside: Mapping[str, str] | None = None


def read_example(code: Code, table: BackendTable, *, colour: bool = False) -> Example | None:
    """Check the specs of a code's example with these backends; None when it has none."""
    if code.no_example:
        return None
    folder = _FOLDER / code.code
    about = CIRCUMSTANCES.get(code.code, Circumstance())
    altered = table if about.alter is None else about.alter(table)
    with TemporaryDirectory() as name:
        # Not where it is installed: a circumstance may add files.
        copy = Path(name) / code.code
        shutil.copytree(folder, copy) if folder.is_dir() else copy.mkdir()
        if about.prepare is not None:
            about.prepare(copy, altered)
        fixed = copy / "fixed.yaml"
        return Example(
            failing=_checked(copy / "failing.yaml", altered, colour),
            fixed=_checked(fixed, altered, colour) if fixed.is_file() else None,
            when=about.when,
            remedy=about.remedy,
            beside={
                path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
                for path in sorted(folder.rglob("*"))
                if path.is_file() and path.name not in ("failing.yaml", "fixed.yaml")
            },
        )


def _checked(path: Path, table: BackendTable, colour: bool) -> CheckedSpec:
    text = path.read_bytes().decode("utf-8", "replace") if path.is_file() else None
    # An example that needs more than its name says so in its first line, as one would type it.
    written = _COMMAND.match(text or "")
    command = f"agentc check {path.name}" if written is None else written[1]
    arguments = _parser().parse_args(shlex.split(command)[2:])
    params = dict(word.split("=", 1) for word in arguments.params)
    compiled = compile_spec(
        path, params, table, scale=arguments.scale, locked=arguments.locked, moving=True
    )
    message = render_text(compiled.diagnostics, colour=colour).replace(f"{path.parent}/", "")
    return CheckedSpec(command, text, compiled.diagnostics, message)


def _parser() -> argparse.ArgumentParser:
    """The options of `agentc check` that decide what is found in a spec."""
    parser = argparse.ArgumentParser()
    parser.add_argument("spec", type=Path)
    parser.add_argument("-p", dest="params", action="append", default=[])
    parser.add_argument("--scale")
    parser.add_argument("--locked", action="store_true")
    return parser


_WIDTH = 88


def error_page(code: Code, table: BackendTable) -> str:
    """The page of a code, as Markdown."""
    lines = [f"# {code.code}: {code.title}", "", *folded(code.explanation), ""]
    example = read_example(code, table)
    if example is None:
        return "\n".join([*lines, *folded(code.no_example), "", *_footer()])
    for heading, text, spec in _sections(example):
        lines += [f"## {heading}", ""]
        if text:
            lines += [*folded(text), ""]
        if spec is not None:
            lines += _fenced("yaml", spec.text or "") if spec.text is not None else []
            output = folded_output(spec.message or _nothing(spec))
            lines += _fenced("console", f"$ {spec.command}\n{output}")
    for name, text in (example.beside or {}).items():
        lines += [f"## Beside them: `{name}`", "", *_fenced("yaml", text)]
    return "\n".join([*lines, *_footer()])


def error_index() -> str:
    """The index of the pages: every code, by layer."""
    lines = [
        "# Diagnostic codes",
        "",
        *folded(
            "Each page has an example that fails, what agentc prints about it (lines over "
            f"{WIDEST} columns folded), and the corrected example. `agentc explain CODE` shows the "
            "same in a terminal."
        ),
    ]
    for title, codes in LAYERS:
        if codes:
            lines += ["", f"## {title}", "", "| code | what is wrong |", "|---|---|"]
            ordered = sorted(codes, key=lambda code: code.code)
            lines += [f"| [{code.code}]({code.code}.md) | {code.title} |" for code in ordered]
    return "\n".join(lines) + "\n"


def error_text(code: Code, table: BackendTable, *, colour: bool = False) -> str:
    """The same page for a terminal; `colour` paints the messages."""
    lines = [f"{code.code}: {code.title}", "", *_wrapped(code.explanation)]
    example = read_example(code, table, colour=colour)
    if example is None:
        return "\n".join([*lines, "", *_wrapped(code.no_example)]) + "\n"
    for name, text in (example.beside or {}).items():
        lines += ["", f"With `{name}`:", "", *_indented(text)]
    for heading, text, spec in _sections(example):
        lines += ["", *_wrapped(f"{heading}. {text}" if text else f"{heading}:")]
        if spec is not None:
            lines += ["", *_indented(spec.text)] if spec.text is not None else []
            output = spec.message or _nothing(spec)
            lines += ["", *_indented(f"$ {spec.command}\n{output}")]
    return "\n".join(lines) + "\n"


def _sections(example: Example) -> Iterator[tuple[str, str, CheckedSpec | None]]:
    """Heading, prose and spec of each section."""
    when = f"This fails {example.when}." if example.when else ""
    yield "A spec that fails", when, example.failing
    yield "Fixed", example.remedy, example.fixed


def _nothing(spec: CheckedSpec) -> str:
    name = spec.command.split()[2]
    return f"{name}: no errors\n"


def _fenced(language: str, text: str) -> list[str]:
    return [f"```{language}", text.rstrip("\n"), "```", ""]


def _footer() -> list[str]:
    return ["[All codes](README.md)", ""]


def _indented(text: str | None) -> list[str]:
    lines = (text or "").rstrip("\n").split("\n")
    return [f"    {line}".rstrip() for line in lines]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH)
