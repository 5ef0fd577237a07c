"""The section `track:` of the IR: `trackio`, a list of names, or names with their settings.
Part of `resolve_names`. Neighbour: `resolve_budget.py`, the other section without a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentc.backend_api import Tracker, installed_trackers
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.expressions import Evaluator
from agentc.ir.module import Tracking
from agentc.kinds.field import Json
from agentc.schema.coerce import Coercion
from agentc.schema.keys import Place, as_mapping
from agentc.source.tree import Computed, Node, Scalar, Sequence, Unknown, described
from agentc.source.tree import Mapping as MappingNode
from agentc.syntax.nodes import Spec

_EXPECTED = "a tracker, a list of them, or a mapping such as `{trackio: {project: mine}}`"


def resolve_track(
    spec: Spec, params: Mapping[str, Json], evaluator: Evaluator, sink: Sink
) -> tuple[Tracking, ...]:
    """The trackers that a spec names, each once."""
    if spec.track is None:
        return ()
    computed = evaluator.evaluate(spec.track, params)
    known = installed_trackers()
    found: dict[str, Tracking] = {}
    for name, given in _entries(computed, sink):
        tracker = known.get(name.text)
        if tracker is None:
            sink.error(
                "AGC760",
                f"no tracker `{name.text}`",
                name.span,
                expected=f"one of {listed(known)}",
                fix=did_you_mean(name.text, known),
            )
            continue
        settings = _settings(tracker, name, given, sink)
        if settings is not None:
            found[name.text] = Tracking(tracker=name.text, settings=settings, span=name.span)
    return tuple(found.values())


def _entries(node: Node, sink: Sink) -> Iterator[tuple[Scalar, Node | None]]:
    match node:
        case Unknown():
            return
        case Scalar():
            yield node, None
        case Computed(json=str(text)):
            yield Scalar(text, True, node.span), None
        case MappingNode():
            for entry in node.entries:
                yield entry.key, entry.value
        case Sequence() if all(isinstance(each, Scalar) for each in node.items):
            for each in node.items:
                assert isinstance(each, Scalar)
                yield each, None
        case _:
            sink.error(
                "AGC203",
                f"`track` cannot be {described(node)}",
                node.span,
                expected=_EXPECTED,
            )


def _settings(
    tracker: Tracker, name: Scalar, given: Node | None, sink: Sink
) -> Mapping[str, Json] | None:
    if given is None:
        return {}
    path = f"track.{tracker.id}"
    place = Place(path, f"`{path}`")
    example = "a mapping of settings such as `{project: mine}`"
    mapping = as_mapping(given, place, sink, example)
    coercion = Coercion(sink)
    settings = None if mapping is None else coercion.group(mapping, tracker.fields, path)
    if not isinstance(settings, dict):
        return None
    refusal = tracker.refuse(settings) if tracker.refuse else None
    if refusal is not None:
        span = coercion.spans.get(f"{path}.{refusal.setting}", name.span)
        sink.error("AGC761", refusal.message, span, fix=refusal.fix)
        return None
    return settings
