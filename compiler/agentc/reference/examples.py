"""The example of a diagnostic code: a spec that gets it, and the same spec mended, from the folder
`diagnostics/examples/<code>`. `circumstances.py` has what a few of them need besides."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import agentc.diagnostics
from agentc.backend_api import BackendTable
from agentc.compilation import compile_spec
from agentc.diagnostics import Code, Diagnostic, render_text
from agentc.reference.circumstances import CIRCUMSTANCES, Circumstance

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
    """`when` says what has to be so for the first to fail, "" mostly; `mend` says what to do where
    that is not in the spec (then `mended` is None). `beside` are files that the specs use."""

    failing: CheckedSpec
    mended: CheckedSpec | None
    when: str = ""
    mend: str = ""
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
        mended = copy / "mended.yaml"
        return Example(
            failing=_checked(copy / "failing.yaml", altered, colour),
            mended=_checked(mended, altered, colour) if mended.is_file() else None,
            when=about.when,
            mend=about.mend,
            beside={
                path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
                for path in sorted(folder.rglob("*"))
                if path.is_file() and path.name not in ("failing.yaml", "mended.yaml")
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
