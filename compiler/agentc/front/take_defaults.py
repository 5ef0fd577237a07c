"""Defaults: the values under `defaults:` that stages take for keys which they do not set."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.other_tools import advice_for_key
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import listed, nearest_first, offer, suggestions
from agentc.schema import language
from agentc.source.tree import Entry, Scalar, Unknown
from agentc.syntax.nodes import RepeatDecl, Spec, StageDecl


class Defaults:
    """Hands out defaults, and remembers which were taken."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._taken: set[str] = set()
        self._possible = _keys_of_stages(spec)
        self._lost = "defaults" in spec.broken
        self._meant = {
            name: Entry(entry.key, Unknown(entry.value.span))
            for entry, near in self._misspelt()
            for name in near
        }

    def __contains__(self, key: object) -> bool:
        """Whether `take` would give one."""
        return self._lost or key in self._spec.defaults or key in self._meant

    def take(self, key: str) -> Entry | None:
        """The default of a key, counted as taken; None when there is none. Where a misspelt one,
        which `report_unused` reports, may be meant, the value is unknown: no stage lacks it as
        well, and none is checked by it. So is every value where the section cannot be read."""
        entry = self._spec.defaults.get(key)
        if entry is not None:
            self._taken.add(key)
        if self._lost:
            return Entry(Scalar(key, False, self._spec.span), Unknown(self._spec.span))
        return entry or self._meant.get(key)

    def report_unused(self, sink: Sink) -> None:
        """Report every default that no stage took."""
        for key, entry in self._spec.defaults.items():
            if key in self._taken:
                continue
            if key in self._possible:
                message = f"every stage that has `{key}` sets it, so nothing takes this default"
                sink.unused("AGC406", message, entry.key.span, fix="remove it")
                continue
            fix = advice_for_key(key, self._possible) or offer(self._near(key))
            keys = listed(nearest_first(key, sorted(self._possible)), 60)
            sink.error(
                "AGC406",
                f"no stage of this spec has a key `{key}`",
                entry.key.span,
                expected=None if fix else f"one of {keys}",
                fix=fix,
            )

    def _misspelt(self) -> Iterator[tuple[Entry, tuple[str, ...]]]:
        for key, entry in self._spec.defaults.items():
            if key not in self._possible:
                yield entry, self._near(key)

    def _near(self, key: str) -> tuple[str, ...]:
        return suggestions(key, [*self._possible, *language.USE_KEYS])


def _keys_of_stages(spec: Spec) -> set[str]:
    """Keys that some stage of the spec has, set or not."""
    keys = {"placement"}
    for declared in [*spec.models.values(), *spec.stages.values()]:
        inner = declared.stages.values() if isinstance(declared, RepeatDecl) else [declared]
        for stage in inner:
            if isinstance(stage, StageDecl) and stage.kind is not None:
                keys |= {field.name for field in stage.kind.fields}
                keys |= set(stage.kind.uses)
    return keys
