"""Defaults: the values under `defaults:` that stages take for keys which they do not set."""

from __future__ import annotations

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.schema import language
from agentc.source.tree import Entry
from agentc.syntax.nodes import RepeatDecl, Spec, StageDecl


class Defaults:
    """Hands out defaults, and remembers which were taken."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._taken: set[str] = set()

    def take(self, key: str) -> Entry | None:
        """The default of a key, counted as taken; None when there is none."""
        entry = self._spec.defaults.get(key)
        if entry is not None:
            self._taken.add(key)
        return entry

    def report_unused(self, sink: Sink) -> None:
        """Report every default that no stage took."""
        possible = self._possible()
        for key, entry in self._spec.defaults.items():
            if key in self._taken:
                continue
            if key in possible:
                message = f"every stage that has `{key}` sets it, so nothing takes this default"
                sink.error("AGC406", message, entry.key.span, fix="remove it")
                continue
            fix = did_you_mean(key, [*possible, *language.USE_KEYS])
            sink.error(
                "AGC406",
                f"no stage of this spec has a key `{key}`",
                entry.key.span,
                expected=None if fix else f"one of {listed(sorted(possible), 40)}",
                fix=fix,
            )

    def _possible(self) -> set[str]:
        keys = {"placement"}
        for declared in [*self._spec.models.values(), *self._spec.stages.values()]:
            inner = declared.stages.values() if isinstance(declared, RepeatDecl) else [declared]
            for stage in inner:
                if isinstance(stage, StageDecl) and stage.kind is not None:
                    keys |= {field.name for field in stage.kind.fields}
                    keys |= set(stage.kind.uses)
        return keys
