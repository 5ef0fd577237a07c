"""The sections `budget:`, `software:` and `track:` of the IR. Part of `resolve_names`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentc.backend_api import Tracker, installed_trackers
from agentc.diagnostics.other_tools import LOCK_INSTEAD, NO_EXISTING_PYTHON
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.expressions import Evaluator
from agentc.ir.module import Budget, SpecLock, Stage, Tracking
from agentc.kinds.field import Json
from agentc.schema import language
from agentc.schema.coerce import Coercion
from agentc.schema.keys import Place, as_mapping
from agentc.source.tree import Computed, Node, Scalar, Sequence, Unknown, described
from agentc.source.tree import Mapping as MappingNode
from agentc.syntax.nodes import Spec

_AMOUNTS = ("wall_hours", "gpu_hours", "tokens", "disk_gb")


def resolve_budget(
    spec: Spec,
    params: Mapping[str, Json],
    stages: Mapping[str, Stage],
    evaluator: Evaluator,
    sink: Sink,
) -> Budget | None:
    """The budget, or None when there is none or it is broken."""
    if spec.budget is None:
        return None
    computed = evaluator.evaluate(spec.budget, params)
    if isinstance(computed, Unknown):
        return None
    example = "a mapping such as `{wall_hours: 2, tokens: 1e9}`"
    mapping = as_mapping(computed, Place("budget", "`budget`"), sink, example)
    coercion = Coercion(sink)
    given = None if mapping is None else coercion.group(mapping, language.BUDGET_FIELDS, "budget")
    if not isinstance(given, dict):
        return None
    amounts = {name: _amount(given.get(name)) for name in _AMOUNTS}
    budget = Budget(
        **amounts,
        quantile=str(given.get("quantile") or "p50"),
        gpu=str(given.get("gpu") or "a100"),
        spans={path.removeprefix("budget."): span for path, span in coercion.spans.items()},
    )
    if not budget.limits():
        listed = ", ".join(f"`{name}`" for name in _AMOUNTS)
        sink.warning(
            "AGC731", "the budget bounds nothing", spec.budget.span, fix=f"give one of {listed}"
        )
    if budget.gpu_hours and stages and not sink.has_errors and not _asks_for_gpus(stages):
        sink.warning(
            "AGC732",
            "the budget bounds GPU-hours, and no stage requests a GPU",
            budget.spans.get("gpu_hours"),
            fix="bound `wall_hours`, or give stages GPUs with `placement: {gpus: 1}`",
        )
    return budget


def _amount(value: Json) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _asks_for_gpus(stages: Mapping[str, Stage]) -> bool:
    asked = (stage.placement.get("gpus") for stage in stages.values())
    return any(value is not None and bool(value.json) for value in asked)


# resolve_software: the section `software:`, names of environments with locks of the spec's own.


def resolve_software(spec: Spec, sink: Sink) -> dict[str, SpecLock]:
    """Names of software stacks with the files of their locks. Expressions are not for here:
    cells of a sweep share their environments."""
    if spec.software is None:
        return {}
    example = "a mapping such as `{vllm: locks/vllm-cuda.txt}`"
    mapping = as_mapping(spec.software, Place("software", "`software`"), sink, example)
    found = {}
    for entry in () if mapping is None else mapping.entries:
        value = entry.value
        if isinstance(value, Scalar) and value.text and "{{" not in value.text:
            found[entry.key.text] = SpecLock(value.text, entry.key.span, value.span)
        else:
            sink.error(
                "AGC208",
                f"the lock of `{entry.key.text}` cannot be {described(value)}",
                value.span,
                expected="the path of a file, as plain text",
                notes=(NO_EXISTING_PYTHON,) if isinstance(value, MappingNode) else (),
                fix=LOCK_INSTEAD if isinstance(value, MappingNode) else None,
            )
    return found


# The section `track:` of the IR: `trackio`, a list of names, or names with their settings.

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
