"""Reads a configuration as Hydra composes it: a file on top of those that its `defaults` name.

As much of Hydra as released configurations use: names of files in the same folder, and `_self_`.
Numbers are read as in specs, so that `2e-5` is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from agentc.diagnostics.sink import Sink
from agentc.exit_codes import EXIT_SPEC, CommandError
from agentc.source.load import load_file
from agentc.source.scalars import Plain, plain_value
from agentc.source.tree import Mapping, Scalar, Sequence

_DEFAULTS, _SELF = "defaults", "_self_"
_NAME = re.compile(r"\w[\w.-]*")
"""Of a file in the same folder, as `defaults` has it."""


class ConfigurationError(CommandError):
    """A configuration that cannot be read or written anew; the text is for people."""

    exit_code = EXIT_SPEC


@dataclass(frozen=True, slots=True)
class ReleasedValue:
    """A value with its place, as `FILE:LINE`."""

    value: Plain
    place: str


def compose(path: Path, sink: Sink) -> dict[str, ReleasedValue]:
    """The keys of a configuration, later files over earlier ones. Raises ConfigurationError, with
    an empty text where the sink says why."""
    return _compose(path, sink, {path})


def _compose(path: Path, sink: Sink, taken: set[Path]) -> dict[str, ReleasedValue]:
    """`taken` has all files that were taken in: each comes once, as for Hydra."""
    root = _read(path, sink)
    listed = root.find(_DEFAULTS)
    own = {
        entry.key.text: _value(path, entry.key.text, entry.value)
        for entry in root.entries
        if entry.key.text != _DEFAULTS
    }
    if listed is None:
        return own
    found: dict[str, ReleasedValue] = {}
    for name in _names(path, listed.value):
        if name == _SELF:
            found |= own
            continue
        base = path.with_name(f"{name}.yaml")
        if base in taken:
            raise ConfigurationError(
                f"{_at(path, listed.key)}: it is based on `{name}`, which is taken in already; "
                "take it out here"
            )
        taken.add(base)
        if not base.is_file():
            raise ConfigurationError(
                f"{_at(path, listed.key)}: it is based on `{name}`, and there is no {base.name} "
                "beside it; copy the folder of the released configurations whole"
            )
        found |= _compose(base, sink, taken)
    return found


def _read(path: Path, sink: Sink) -> Mapping:
    _, root = load_file(path, sink)
    if root is None or sink.has_errors:
        raise ConfigurationError("")
    if not isinstance(root, Mapping):
        raise ConfigurationError(f"{path}: a configuration is a mapping of keys to values")
    if root.find("distributed_type") is not None:
        raise ConfigurationError(
            f"{path} is of `accelerate`: it says on how many processes the released code runs. A "
            "run of RL is one job here, and what it gets is under `placement:`"
        )
    return root


def _names(path: Path, node: object) -> tuple[str, ...]:
    """The list under `defaults`, with `_self_` in it: without, it is open which of two values
    holds."""
    items = node.items if isinstance(node, Sequence) else ()
    names = tuple(item.text for item in items if isinstance(item, Scalar))
    plain = all(_NAME.fullmatch(name) for name in names)
    if len(names) != len(items) or _SELF not in names or not plain:
        raise ConfigurationError(
            f"{path}: `{_DEFAULTS}` is read as a list of names of files beside this one, with "
            f"`{_SELF}` among them; compose other ones with Hydra (`--cfg job`) first"
        )
    return names


def _value(path: Path, key: str, node: object) -> ReleasedValue:
    if not isinstance(node, Scalar):
        raise ConfigurationError(f"{path}: `{key}` is not one value; compose it with Hydra first")
    return ReleasedValue(plain_value(node), _at(path, node))


def _at(path: Path, node: Scalar) -> str:
    return f"{path.name}:{node.span.line}"
