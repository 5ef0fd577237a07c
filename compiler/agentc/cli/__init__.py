"""The command line: `agentc COMMAND ...`. The module of a command is imported when it is typed.

It has HELP (one line), `configure(parser)` and `execute(arguments) -> int`. Exit codes are those of
docs/design/contracts.md, section 8. `other_names.py` answers what is no command.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import cast

from agentc import __version__
from agentc.cli.parser import CommandParser, Executable, add_command
from agentc.collection import paused_collection
from agentc.exit_codes import (
    EXIT_BUG,
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_STORE,
    EXIT_USAGE,
    CommandError,
)
from agentc.output import reaction_of, survive_readers
from agentc.runtime.machine.output_filters import guarded_output

GROUPS: Mapping[str, tuple[str, ...]] = {
    "write a spec": ("init", "check", "explain", "lock"),
    "inspect it": ("plan", "diff", "why", "graph"),
    "run it": ("run", "search", "status", "logs", "cancel"),
    "use the results": ("report", "push", "bundle", "track"),
    "maintenance": ("store", "software", "data", "trust", "serve", "dev"),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)

_COLLECT_AFTER = 100_000
"""Objects made before the garbage collector looks for circles."""

_LISTING = frozenset({"store", "software", "data"})
"""Commands of several actions, which list what there is when none is named."""

_BRIEF = frozenset({"check", "plan"})

_EPILOG = """\
`agentc help COMMAND` describes a command. A first look:
  agentc check specs/quickstart.yaml            is the spec right? (no job is started)
  agentc plan specs/quickstart.yaml             what would run, and what the store has
  agentc plan specs/quickstart.yaml --cost      how long it would take, with the sources
  agentc run specs/quickstart.yaml              run what is missing, then write the report
  agentc explain dpo.beta                       what a setting is, and who reads it
  agentc explain AGC203                         what a message means, with an example

exit codes:
  0 done            1 the spec has errors    2 wrong command line    3 a job failed
  4 the store is damaged or unusable         5 a named thing was not found
  6 a claim with `gate: true` does not hold
  7 `run` or `plan --preflight`: something would fail    70 a bug in agentc
  129 stopped by SIGHUP   130 interrupted (Ctrl-C)
  143 stopped by SIGTERM or `agentc cancel`
`agentc diff` answers as diff(1) does: 0 same, 1 different, 2 trouble. `agentc data fetch` and
`agentc software` exit with 3 where something cannot be fetched or built.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code, and never lets an exception out."""
    if argv is None:  # behind the guard: what it writes to survives its reader
        survive_readers(reaction_of(sys.argv[1:]))
    with guarded_output():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    # Without a command: what there is to run, the best first screen.
    words = list(sys.argv[1:] if argv is None else argv) or ["init"]
    # A compilation makes many objects and lets go of few: the collector's usual threshold of 700
    # costs a fifth of the time of a large plan.
    gc.set_threshold(_COLLECT_AFTER)
    arguments: argparse.Namespace | None = None
    try:
        if argv is None and "_ARGCOMPLETE" in os.environ:  # the tab key: `agentc dev completion`
            from agentc.cli.completing import complete

            complete(_parser_of)
            return EXIT_DONE
        arguments = _parse(words)
        execute = cast("Executable", arguments.command).execute
        with paused_collection() if _is_brief(words, arguments) else nullcontext():
            code = execute(arguments)
            sys.stdout.flush()
            if argv is None:  # The process ends: nothing in it is worth a look for circles.
                gc.freeze()
        return code
    except SystemExit as stop:  # argparse, for --help and for a wrong command line
        return stop.code if isinstance(stop.code, int) else EXIT_USAGE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of a command that only prints: `agentc dev schema | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_DONE
    except CommandError as error:
        if str(error):
            print(f"agentc: {error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        unusable = _start_trouble(error)
        if unusable is not None:
            print(f"agentc: {unusable}", file=sys.stderr)
            return EXIT_FAILED
        trouble = _store_trouble(error, arguments)
        if trouble is None:
            return _report_bug(error)
        print(f"agentc: {trouble}", file=sys.stderr)
        return EXIT_STORE


def _is_brief(words: Sequence[str], arguments: argparse.Namespace) -> bool:
    """Whether a command does one compilation, and that is all."""
    return words[0] in _BRIEF and not getattr(arguments, "watch", False)


def _parse(words: Sequence[str]) -> argparse.Namespace:
    typed = next((word for word in words if not word.startswith("-")), None)
    if typed == "help" and words[0] == typed:
        words = [*(word for word in words[1:] if not word.startswith("-")), "--help"]
        typed = words[0] if len(words) > 1 else None
    if typed is not None and typed not in COMMANDS:
        raise _no_command(typed)
    from agentc.runtime.store.layout import renamed_variable

    renamed = renamed_variable(os.environ)
    if renamed is not None:
        raise CommandError(renamed)
    if words[0] == "--version":
        return _parser_of(()).parse_args(words)
    if typed in _LISTING and words[0] == typed:
        words = _with_action(words)
    # Only the typed command is imported; all of them are for the list of --help.
    parser = _parser_of(COMMANDS if typed is None else (typed,))
    arguments, unknown = parser.parse_known_args(words)
    if unknown:  # said by the command's own parser, which shows its own usage
        arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return arguments


def _no_command(typed: str) -> SystemExit:
    """What ends agentc where there is no such command; standard error says what to type."""
    from agentc.cli.other_names import former_command, hint_for

    former = former_command(typed)
    if former is None:
        _parser_of(()).error(f"no command `{typed}`; {hint_for(typed, COMMANDS)}")
    print(former, file=sys.stderr)
    return SystemExit(EXIT_USAGE)


def _with_action(words: Sequence[str]) -> Sequence[str]:
    """The words of a command that lists where no action is typed."""
    after = words[1] if len(words) > 1 else "--"
    if after.startswith("--") and after != "--help":
        return [words[0], "ls", *words[1:]]
    return words


def command_named(name: str) -> Executable:
    """A command, whose module is imported."""
    return cast("Executable", importlib.import_module(f"agentc.cli.{name}"))


def _parser_of(names: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of some of the commands, whose modules it imports."""
    parser = CommandParser(
        prog="agentc",
        usage="agentc COMMAND ...\n       agentc help [COMMAND]",
        description="Compile an experiment of LLM-agent research from one YAML spec, and run it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"agentc {__version__}")
    if not names:
        return parser
    subparsers = parser.add_subparsers(
        prog="agentc", metavar="COMMAND", help=argparse.SUPPRESS, required=True
    )
    lines = {}
    for name in names:
        command = command_named(name)
        lines[name] = command.HELP
        add_command(subparsers, name, command)
    if len(names) == len(COMMANDS):
        parser.epilog = f"{_groups_text(lines)}\n{_EPILOG}"
    return parser


def _groups_text(lines: Mapping[str, str]) -> str:
    """The commands with their lines of help, by group."""
    text = ""
    for title, names in GROUPS.items():
        text += f"{title}:\n" + "".join(f"  {name:<8} {lines[name]}\n" for name in names)
    return text


def _start_trouble(error: Exception) -> str | None:
    """In words why an interpreter cannot be started; None for any other error."""
    if not isinstance(error, OSError):
        return None
    from agentc.runtime.store.file_system import explain_start

    return explain_start(error)


def _store_trouble(error: Exception, arguments: argparse.Namespace | None) -> str | None:
    """In words what a store's file system did; None for any other error."""
    if arguments is None or not hasattr(arguments, "store"):
        return None
    from agentc.runtime.store.file_system import StoreWriteError, is_of_disk
    from agentc.store.paths import StoreUnusableError, store_root, unusable

    if isinstance(error, (StoreUnusableError, StoreWriteError)):
        return str(error)
    if not isinstance(error, OSError):
        return None
    root = store_root(arguments.store)
    inside = str(error.filename or "").startswith(str(root))
    return unusable(error, root) if inside or is_of_disk(error) else None


def _report_bug(error: Exception) -> int:
    if os.environ.get("AGENTC_DEBUG") == "1":
        traceback.print_exc()
    else:
        kind = type(error).__name__
        print(
            f"agentc: this is a bug in agentc ({kind}: {error})\n"
            "Run the command again with AGENTC_DEBUG=1 for the traceback, and please report it.",
            file=sys.stderr,
        )
    return EXIT_BUG
