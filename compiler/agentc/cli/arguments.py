"""Arguments that several commands share: the spec, `-p name=value`, and how errors are shown."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from agentc.cli.parser import typed_twice
from agentc.diagnostics.diagnostic import Diagnostic
from agentc.diagnostics.render import counts_of, render_json, render_text

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation
    from agentc.ir.search import Ends
    from agentc.lock.references import OutsideReferences


def add_spec_arguments(
    parser: argparse.ArgumentParser, *, optional: bool = False, several: bool = False
) -> None:
    """SPEC, -p and --scale; an `optional` SPEC that is left out is None. `several` take files and
    folders, as texts in `specs`: as a path, one that is empty would be the current folder."""
    if several:
        parser.add_argument(
            "specs",
            nargs="+",
            metavar="SPEC",
            help="specs, YAML files, or folders: the specs in them and below",
        )
    else:
        parser.add_argument(
            "spec",
            type=Path,
            nargs="?" if optional else None,
            metavar="SPEC",
            help="the spec, a YAML file",
        )
    add_param_argument(parser)
    add_allow_path_argument(parser)
    parser.add_argument(
        "--scale",
        metavar="NAME",
        help="one of the spec's `scales:`, such as smoke; default: `full`, the spec as written",
    )
    parser.set_defaults(locked=False)


def add_param_argument(
    parser: argparse.ArgumentParser, what: str = "value of one of the spec's params"
) -> None:
    """-p NAME=VALUE, for every command that takes a spec or finds a run by what it was given."""
    parser.add_argument(
        "-p",
        "--param",
        dest="params",
        action=Param,
        default={},
        metavar="NAME=VALUE",
        help=f"{what}; may be given several times",
    )


def names_spec(word: str) -> bool:
    """Whether a word of the command line is a spec and no stage or run: by how it ends."""
    return word.endswith((".yaml", ".yml"))


def add_format_argument(
    parser: argparse.ArgumentParser,
    what: str = "output form",
    *,
    choices: Sequence[str] = ("text", "json"),
    default: str | None = "text",
) -> None:
    """--format, and --json for `--format json`: the same two for every command that prints what a
    program may want to read. Gives `format`."""
    parser.add_argument("--format", choices=choices, default=default, help=what)
    parser.add_argument(
        "--json", dest="format", action="store_const", const="json", help="same as --format json"
    )


def add_allow_path_argument(parser: argparse.ArgumentParser) -> None:
    """--allow-path, for every command that reads specs."""
    parser.add_argument(
        "--allow-path",
        dest="allow_paths",
        action="append",
        default=[],
        metavar="DIR",
        help="a directory besides its own that the spec may name files in; may be given several "
        "times, and adds to AGENTC_ALLOW_PATH",
    )
    parser.add_argument(
        "--allow-code",
        dest="allow_code",
        action="append",
        default=[],
        metavar="DIR",
        help="a directory whose Python code the spec may bring along as `backends:`, to be run by "
        "agentc itself; `agentc trust DIR` does so once for all; adds to AGENTC_ALLOW_CODE",
    )


def compile_typed(
    arguments: argparse.Namespace,
    table: BackendTable,
    *,
    every_scale: bool = False,
    references: OutsideReferences | None = None,
    moving: bool = True,
    ends: Ends | None = None,
) -> Compilation:
    """Compile the spec that was typed, with all that `add_spec_arguments` takes: no command can
    forget one of them. `ends`: where its rounds have stopped. `moving`: a branch that no lock pins
    is a warning; commands that write or run a plan pin it, or have an error of it."""
    from agentc.compilation import compile_spec
    from agentc.source.files import allowed_code, allowed_paths

    return compile_spec(
        arguments.spec,
        arguments.params,
        table,
        scale=arguments.scale,
        every_scale=every_scale,
        locked=arguments.locked,
        references=references,
        moving=moving,
        ends=ends,
        allowed=allowed_paths(arguments.allow_paths),
        code=allowed_code(arguments.allow_code),
    )


def spec_table(arguments: argparse.Namespace, table: BackendTable) -> BackendTable:
    """The backends that the typed spec may name: those beside it too, as far as they may be
    loaded. What is wrong with them, its compilation reports."""
    from agentc.diagnostics import Sink
    from agentc.front.local_backends import with_local_backends
    from agentc.source.files import allowed_code, folder_of
    from agentc.source.load import load_file

    _, root = load_file(arguments.spec, Sink())
    code = allowed_code(arguments.allow_code)
    return with_local_backends(root, table, folder_of(arguments.spec), code, Sink()).table


def add_locked_argument(parser: argparse.ArgumentParser) -> None:
    """--locked, for commands that make something of a spec."""
    parser.add_argument(
        "--locked",
        action="store_true",
        help="refuse when the spec's lock is missing or out of date (else a warning)",
    )


def show_diagnostics(
    diagnostics: Sequence[Diagnostic],
    form: str = "text",
    stream: TextIO | None = None,
    *,
    about: Path | None = None,
) -> None:
    """Print diagnostics: text to standard error; `json`, `jsonl` (JSON on one line) and `sarif`
    to standard output. `about` is the spec, for SARIF."""
    if form in ("json", "jsonl"):
        print(render_json(diagnostics, indent=2 if form == "json" else None), file=stream)
        return
    if form == "sarif":
        from agentc.diagnostics.sarif import render_sarif
        from agentc.reference.codes import code_named

        print(render_sarif([(str(about), diagnostics)], code_named), file=stream)
        return
    target = stream or sys.stderr
    text = render_text(diagnostics, colour=wants_colour(target))
    if text:
        print(text, end="", file=target)
        show_hint(diagnostics, target)


def print_diagnostics(compiled: Compilation, arguments: argparse.Namespace) -> None:
    """What a compilation found, for every command but `check`: errors in full, with all that stands
    beside them; warnings alone in one line, since `check` has shown them, or does when asked."""
    if compiled.has_errors or compiled.plan is None:
        show_diagnostics(compiled.diagnostics)
        return
    found = counts_of(compiled.diagnostics)
    if found:
        show = "shows it" if len(compiled.diagnostics) == 1 else "shows them"
        print(f"{found}; `{same_spec('check', arguments)}` {show}", file=sys.stderr)


def same_spec(command: str, arguments: argparse.Namespace, form: str = "", *options: str) -> str:
    """Another command for the spec that was typed, at the same scale and with the same params, and
    with these options as they were typed."""
    words = ["agentc", command, str(arguments.spec), *([form] if form else [])]
    for name in options:
        value = getattr(arguments, name)
        words += [] if value is None else [f"--{name}", value]
    words += [] if arguments.scale is None else ["--scale", arguments.scale]
    words += [word for pair in arguments.params.items() for word in ("-p", "=".join(pair))]
    return shlex.join(words)


def show_hint(diagnostics: Sequence[Diagnostic], stream: TextIO) -> None:
    """Say where the first error (else the first warning) of some is explained."""
    code = next((d.code for d in diagnostics if d.severity == "error"), diagnostics[0].code)
    print(f"`agentc explain {code}` has an example and its fix", file=stream)


def wants_colour(stream: TextIO) -> bool:
    """Colour only on a terminal that can, and not against NO_COLOR (no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class Param(argparse.Action):
    """Collects `name=value` into a dict; a name may have one value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        given, held = parse_param(parser, str(values)), getattr(namespace, self.dest)
        for name, value in given.items():
            if held.get(name, value) != value:
                raise typed_twice(self, f"{name}={held[name]}", f"{name}={value}")
        setattr(namespace, self.dest, {**held, **given})


def parse_param(parser: argparse.ArgumentParser, text: str) -> dict[str, str]:
    """One `name=value`; anything else is a wrong command line."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        parser.error(f"-p takes NAME=VALUE, not `{text}`")
    return {name.strip(): value}
