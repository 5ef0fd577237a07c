"""`agentc check` of several specs and folders: one line a spec, one result for all.

A folder means the YAML files below it that are specs; other files in it are counted. `-p` and
`--scale` reach the specs that declare what they name; it is an error when none does.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import compile_typed, names_spec, show_hint, wants_colour
from agentc.diagnostics.diagnostic import Diagnostic
from agentc.diagnostics.render import counts_of, render_blocks, render_json_by_spec
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.exit_codes import EXIT_DONE, EXIT_SPEC
from agentc.front.apply_scale import scale_names
from agentc.source.files import SPEC_LIMITS, UnreadableError, is_file, read_named
from agentc.source.load import load_bytes
from agentc.source.tree import Mapping, Node, shortened
from agentc.store.paths import FULL
from agentc.text import counted

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable


@dataclass(frozen=True, slots=True)
class _Checked:
    """A spec as typed, what was found in it, and how large it is."""

    name: str
    diagnostics: tuple[Diagnostic, ...]
    stages: int
    jobs: int

    @property
    def line(self) -> str:
        """What is said of it alone."""
        wrong = counts_of(d for d in self.diagnostics if d.severity == "error")
        warned = counts_of(d for d in self.diagnostics if d.severity != "error")
        size = f"{counted(self.stages, 'stage')}, {counted(self.jobs, 'job')}"
        if wrong:
            return f"{self.name}: {', '.join(part for part in (wrong, warned) if part)}"
        return f"{self.name}: no errors{f', {warned}' if warned else ''}; {size}"


def check_several(arguments: argparse.Namespace, table: BackendTable) -> int:
    """Check what `arguments.specs` mean and print it in `arguments.format`; 0 when all are right,
    1 when one has errors."""
    sink = Sink()
    files = find_spec_files(arguments.specs, sink, only_specs=arguments.only_specs)
    _report_unknown(arguments, files.specs, sink)
    general = sink.sorted()
    is_text = arguments.format == "text"
    if is_text:
        _show(general)
    checked: list[_Checked] = []
    for file in files.specs:
        checked.append(_check(arguments, file, table))
        if is_text:
            _show(checked[-1].diagnostics)
            if not arguments.quiet:
                print(checked[-1].line, flush=True)
    found = [*general, *(d for each in checked for d in each.diagnostics)]
    if is_text:
        _summarise(found, checked, files, quiet=arguments.quiet)
    else:
        _print_document(arguments, general, checked, files)
    return EXIT_SPEC if any(d.severity == "error" for d in found) else EXIT_DONE


def _check(arguments: argparse.Namespace, file: SpecFile, table: BackendTable) -> _Checked:
    params, scale = arguments.params, arguments.scale
    if file.params is not None:
        params = {name: text for name, text in params.items() if name in file.params}
    if file.scales is not None and scale not in file.scales:
        scale = None
    alone = {**vars(arguments), "spec": file.path, "params": params, "scale": scale}
    compiled = compile_typed(argparse.Namespace(**alone), table, every_scale=True)
    return _Checked(
        name=str(file.path),
        diagnostics=compiled.diagnostics,
        stages=0 if compiled.module is None else len(compiled.module.stages),
        jobs=0 if compiled.plan is None else len(compiled.plan.jobs),
    )


def _report_unknown(arguments: argparse.Namespace, specs: Sequence[SpecFile], sink: Sink) -> None:
    """What was given for specs and none of them declares. Of one that cannot be read nothing is
    known, so then nothing is said."""
    params = [file.params for file in specs if file.params is not None]
    scales = [file.scales for file in specs if file.scales is not None]
    if not specs or len(params) < len(specs):
        return
    many = f"none of the {len(specs)} specs has" if len(specs) > 1 else "the spec has no"
    known = list(dict.fromkeys(name for names in params for name in names))
    for name in arguments.params:
        if name not in known:
            _report(sink, "AGC306", f"{many} a param `{name}`", name, known)
    known = list(dict.fromkeys(name for names in scales for name in names))
    if arguments.scale not in (None, FULL, *known):
        _report(sink, "AGC431", f"{many} a scale `{arguments.scale}`", arguments.scale, known)


def _report(sink: Sink, code: str, message: str, name: str, known: Sequence[str]) -> None:
    expected = f"one of {listed(known)}" if known else None
    sink.error(code, message, expected=expected, fix=did_you_mean(name, known))


def _show(diagnostics: Sequence[Diagnostic]) -> None:
    text = render_blocks(diagnostics, colour=wants_colour(sys.stderr))
    if text:
        print(text, file=sys.stderr, flush=True)


def _summarise(
    found: Sequence[Diagnostic], checked: Sequence[_Checked], files: SpecFiles, *, quiet: bool
) -> None:
    specs = counted(len(checked), "spec")
    if not quiet and files.passed_over:
        print(f"{counted(files.passed_over, 'file')} without a spec passed over", flush=True)
    if found:
        print(f"{counts_of(found)}; {specs} checked", file=sys.stderr)
        show_hint(found, sys.stderr)
    elif not quiet:
        print(f"{specs} checked: no errors")


def _print_document(
    arguments: argparse.Namespace,
    general: Sequence[Diagnostic],
    checked: Sequence[_Checked],
    files: SpecFiles,
) -> None:
    found: Iterable[tuple[str, Sequence[Diagnostic]]] = [
        (each.name, each.diagnostics) for each in checked
    ]
    if arguments.format == "json":
        print(render_json_by_spec(found, general, passed_over=files.passed_over))
        return
    from agentc.diagnostics.sarif import render_sarif
    from agentc.reference.codes import code_named

    # What belongs to no spec is shown at the first: sites drop results without a file.
    first = checked[0].name if checked else str(arguments.specs[0])
    print(render_sarif([(first, general), *found], code_named))


_SPEC = re.compile(rb"^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\"']?agentc[\"']?[ \t]*:", re.MULTILINE)
_TEMPLATE = re.compile(rb"^[\"']?template[\"']?[ \t]*:", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFile:
    """A spec to check, with the names of the params and scales that it declares; None where its
    text cannot be read as YAML, which its check will say."""

    path: Path
    params: tuple[str, ...] | None = None
    scales: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFiles:
    """Each spec once, in the order typed (in a folder: by path), and how many YAML files were
    passed over because they are none."""

    specs: tuple[SpecFile, ...]
    passed_over: int


def find_spec_files(words: Sequence[str], sink: Sink, *, only_specs: bool = False) -> SpecFiles:
    """The specs that `words` mean. A file is meant whatever it holds, unless `only_specs`; folders
    whose name begins with a dot are not entered. A folder that cannot be read or holds no spec is
    an error in the sink."""
    found: dict[str, SpecFile] = {}
    passed_over: set[str] = set()

    def add(path: Path, *, named: bool) -> bool:
        place = os.path.abspath(path)  # noqa: PTH100 - links stay: they are names of their own
        if place not in found:
            spec = _spec_file(path, certain=named)
            if spec is None:
                passed_over.add(place)
                return False
            passed_over.discard(place)
            found[place] = spec
        return True

    for word in words:
        if not os.path.isdir(word):  # noqa: PTH112 - of a Path it raises for long names
            add(Path(word), named=not only_specs)
            continue
        # Every file is looked at: `any` would end at the first spec.
        specs = [add(path, named=False) for path in _yaml_files(word, sink)]
        if not any(specs):
            sink.error(
                "AGC101",
                f"there is no spec in the folder {shortened(word, 200)}",
                expected="a .yaml or .yml file with the key `agentc`, there or below",
            )
    return SpecFiles(specs=tuple(found.values()), passed_over=len(passed_over))


def _yaml_files(folder: str, sink: Sink) -> Iterable[Path]:
    def unreadable(error: OSError) -> None:
        reason = (error.strerror or type(error).__name__).lower()
        sink.error(
            "AGC101", f"cannot read the folder {shortened(str(error.filename), 200)}: {reason}"
        )

    files: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(parent, name) for name in names if names_spec(name))
        # A pipe would be waited for. A link that leads nowhere is a fault, which its check says.
        files += [path for path in paths if is_file(path) or path.is_symlink()]
    return sorted(files)


def _spec_file(path: Path, *, certain: bool) -> SpecFile | None:
    """What is known of a file before its check; None for one that is no spec. A `certain` one is
    taken for one."""
    if not is_file(path):  # nothing is there, or a pipe, whose text can be read only once
        return SpecFile(path=path)
    try:
        data = read_named(path, SPEC_LIMITS.file_bytes + 1)
    except UnreadableError:
        return SpecFile(path=path)
    data = data.replace(b"\0", b"")  # UTF-16, which the check refuses, is a spec all the same
    if not certain and b"agentc" not in data:
        return None
    _, root = load_bytes(data, str(path), Sink())
    if not certain and not _is_spec(root, data):
        return None
    return SpecFile(
        path=path,
        params=None if root is None else _keys(root, "params"),
        scales=None if root is None else scale_names(root),
    )


def _is_spec(root: Node | None, data: bytes) -> bool:
    if isinstance(root, Mapping):
        return root.find("agentc") is not None and root.find("template") is None
    # Broken YAML may be a spec that somebody has just broken.
    return _SPEC.search(data) is not None and _TEMPLATE.search(data) is None


def _keys(root: Node, name: str) -> tuple[str, ...]:
    entry = root.find(name) if isinstance(root, Mapping) else None
    table = None if entry is None else entry.value
    return tuple(e.key.text for e in table.entries) if isinstance(table, Mapping) else ()
