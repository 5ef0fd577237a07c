"""Where two evaluations were played, or two revisions judged, by different rules: what a comparison
and a claim about a difference say besides their numbers. The rules are `protocol` in metrics.json,
and those of the judge in a revision's judged_by.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Metrics: TypeAlias = Mapping[str, Any]

_UNSET = object()
_LONGEST = 60


def protocol_warning(one: tuple[str, Metrics], other: tuple[str, Metrics]) -> str | None:
    """A sentence for two of these names, where their rules differ."""
    apart = protocol_differences(one[1], other[1])
    if apart is None:
        return None
    what, whose = ("judged", "judge") if "length_range" in one[1] else ("played", "policy")
    return (
        f"{one[0]} and {other[0]} were {what} under two protocols ({apart}): their difference is "
        f"that of protocol and {whose} together"
    )


def protocol_differences(one: Metrics, other: Metrics) -> str | None:
    """The rules that differ, with both values; None where all are equal, or one of the two
    evaluations says nothing of its own."""
    ours, theirs = (metrics.get("protocol") for metrics in (one, other))
    if not ours or not theirs:
        return None
    if ("answer" in ours) != ("answer" in theirs):
        answer = ours.get("answer") or theirs["answer"]
        return f"one is the answer of a search (`{answer}`), the other an episode of its policy"
    return "; ".join(_differing(dict(_flat(ours)), dict(_flat(theirs)))) or None


def _differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*ours, *theirs]):
        first, second = ours.get(name, _UNSET), theirs.get(name, _UNSET)
        if first == second:
            continue
        shown = _value_text(first), _value_text(second)
        # Long texts that differ behind where they are cut would look equal.
        yield f"{name} {shown[0]} and {shown[1]}" if shown[0] != shown[1] else name


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _value_text(value: Any) -> str:
    if value is _UNSET:
        return "unset"
    if value is None:
        return "none"
    if not isinstance(value, str):
        return str(value)
    plain = value.isidentifier()
    text = value if plain else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
