"""Which specs are meant where several files and folders are typed: `agentc check specs/ mine.yaml`.

A folder means the YAML files below it that are specs; whatever else lies there is counted. Imported
for several alone: one spec is read once, by the compilation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentc.cli.arguments import names_spec
from agentc.diagnostics.sink import Sink
from agentc.front.apply_scale import scale_names
from agentc.source.files import SPEC_LIMITS, UnreadableError, is_file, read_named
from agentc.source.load import load_bytes
from agentc.source.tree import Mapping, Node, shortened

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

    def look(path: Path, *, named: bool) -> bool:
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
            look(Path(word), named=not only_specs)
            continue
        # Every file is looked at: `any` would end at the first spec.
        specs = [look(path, named=False) for path in _yaml_files(word, sink)]
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
