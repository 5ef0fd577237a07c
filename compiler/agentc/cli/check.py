"""`agentc check SPEC ...`: everything that can be known to be wrong before a job starts; with
--watch again whenever a file that the spec reads changes. check_several.py takes several specs.

Files are polled by path: editors replace a file rather than write into it, which watchers of
inodes lose, and network file systems report nothing at all. A spec reads few files.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from agentc.cli.arguments import (
    add_format_argument,
    add_locked_argument,
    add_spec_arguments,
    compile_typed,
    show_diagnostics,
)
from agentc.exit_codes import EXIT_SPEC, EXIT_USAGE
from agentc.runtime.machine.output_filters import unguarded

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation


HELP = "say whether specs are right; every error at once, nothing is run"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_spec_arguments(parser, several=True)
    parser.add_argument(
        "--only-specs",
        action="store_true",
        help="pass over files that are no specs (no key `agentc`, or a template), as folders do",
    )
    add_locked_argument(parser)
    add_format_argument(
        parser,
        "how errors are written; json and sarif (2.1.0) go to standard output",
        choices=("text", "json", "sarif"),
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument(
        "-w",
        "--watch",
        action="store_true",
        help="check again whenever a file that the spec reads changes, until Ctrl-C; one spec only",
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 when every spec is right (there may be warnings), 1 when one has errors, 2 for a
    wrong command line. With --watch it goes on until it is interrupted."""
    from agentc.backend_api import load_backends

    typed: list[str] = arguments.specs
    several = len(typed) > 1 or arguments.only_specs or os.path.isdir(typed[0])  # noqa: PTH112
    if arguments.watch and several:
        print("agentc: --watch takes one spec, and no folder or --only-specs", file=sys.stderr)
        return EXIT_USAGE
    table = load_backends()
    if arguments.watch and arguments.format == "sarif":
        print("agentc: --watch prints text or json; sarif is for one check", file=sys.stderr)
        return EXIT_USAGE
    if several:
        from agentc.cli.check_several import check_several

        return check_several(arguments, table)
    arguments.spec = Path(typed[0])
    if arguments.watch:
        _watch(arguments, table)
    return EXIT_SPEC if _check(arguments, table).has_errors else 0


def _check(arguments: argparse.Namespace, table: BackendTable) -> Compilation:

    spec: Path = arguments.spec
    compiled = compile_typed(arguments, table, every_scale=True)
    # A watcher's reader wants to know where one answer ends: one line of JSON for each.
    form = "jsonl" if arguments.watch and arguments.format == "json" else arguments.format
    show_diagnostics(compiled.diagnostics, form, about=spec)
    if not compiled.has_errors and arguments.format == "text" and not arguments.quiet:
        stages = 0 if compiled.module is None else len(compiled.module.stages)
        jobs = 0 if compiled.plan is None else len(compiled.plan.jobs)
        print(f"{spec}: no errors; {stages} stages, {jobs} jobs")
        for use in compiled.secrets:
            print(f"a run needs the secret {use.described()}")
    return compiled


def _watch(arguments: argparse.Namespace, table: BackendTable) -> NoReturn:

    spec: Path = arguments.spec

    def check() -> tuple[Path, ...]:
        compiled = _check(arguments, table)
        # What is missing may be made: an error can be about a file that is not there yet.
        beside = (spec.parent,) if compiled.has_errors else ()
        return (*compiled.files, *beside)

    terminal = sys.stdout.isatty() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    watch(spec, check, clear=terminal and arguments.format == "text")


INTERVAL_S = 0.15
GONE_S = 1.0
"""How long a file may be away before that is news: some editors delete and then write."""
CLOCK_S = 0.05
"""How far the times of files may lag behind the clock."""

_CLEAR = "\x1b[2J\x1b[H"
_Mark: TypeAlias = tuple[object, ...] | None
_State: TypeAlias = dict[Path, _Mark]


def watch(spec: Path, check: Callable[[], Iterable[Path]], *, clear: bool) -> NoReturn:
    """Call `check` now and after every change of the files that it says it read (of a folder: the
    names of the YAML files in it), until Ctrl-C, whose KeyboardInterrupt goes to the caller.
    `clear` empties the terminal before each."""
    known = _marks([spec])
    while True:
        if clear:
            print(_CLEAR, end="", flush=True, file=unguarded(sys.stdout))
        started = time.time()
        # Editors match these two lines (docs/editors.md).
        _print_time(f"checking {spec}")
        known = _after(known, check(), started)
        files = "1 file" if len(known) == 1 else f"{len(known)} files"
        sys.stdout.flush()
        _print_time(f"watching {files}; Ctrl-C ends")
        known = _changed(known)


def _print_time(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def _after(before: Mapping[Path, _Mark], files: Iterable[Path], started: float) -> _State:
    """What the check saw: what was there before it, so that a change made meanwhile still counts.
    A file seen for the first time that was written meanwhile counts as changed too."""
    state: _State = {}
    for file in dict.fromkeys(files):
        mark = before[file] if file in before else _mark(file)
        fresh = file not in before and mark is not None and _written(file) > started - CLOCK_S
        state[file] = () if fresh else mark
    return state


def _changed(known: _State) -> _State:
    """Waits until something differs from `known`, and then until it stays as it is."""
    now = _marks(known)
    while now == known:
        time.sleep(INTERVAL_S)
        now = _marks(known)
    since = time.monotonic()
    while True:
        time.sleep(INTERVAL_S)
        later = _marks(known)
        away = any(later[file] is None and known[file] is not None for file in known)
        if later == now and (not away or time.monotonic() - since > GONE_S):
            return now
        now = later


def _marks(files: Iterable[Path]) -> _State:
    return {file: _mark(file) for file in files}


def _mark(path: Path) -> _Mark:
    """Something that differs when the file does; None when there is none."""
    try:
        if path.is_dir():
            return tuple(sorted(p.name for p in path.iterdir() if p.suffix in (".yaml", ".yml")))
        found = path.stat()
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
