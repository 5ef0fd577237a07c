"""plan.json: a Plan as plain JSON and as text, and back (docs/design/contracts.md, section 2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from agentc.backend_api import JobDraft, LeaseDraft, Ranks
from agentc.collection import paused_collection
from agentc.kinds.field import Json
from agentc.plan.job import (
    Job,
    JobBody,
    JobMemory,
    Lease,
    ModelSize,
    Plan,
    ResourceRequest,
    Resources,
    Server,
    Session,
    SourcePlace,
)
from agentc.plan.keys import SCALARS, plain_json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


PLAN_VERSION = 2


@paused_collection()
def plan_document(plan: Plan) -> dict[str, Json]:
    """The plan as plain JSON, inputs and targets written as objects (`<kind>/<key>`)."""
    objects = {job.id: job.object for job in plan.jobs}
    records = _Records()
    return {
        "plan": PLAN_VERSION,
        "name": plan.name,
        "spec": {"file": plan.spec_file, "sha256": plan.spec_sha256},
        "params": plain_json(plan.params),
        **({"chosen": plain_json(plan.chosen)} if plan.chosen else {}),
        **({"code": plain_json(plan.code)} if plan.code else {}),
        "software": {
            name: {"lock": lock.sha256, "file": f"software/{name}.txt"}
            for name, lock in sorted(plan.software.items())
        },
        "jobs": [_job(job, objects, records) for job in plan.jobs],
        "sessions": [record(session) for session in plan.sessions],
        **({"servers": [_server(one, objects) for one in plan.servers]} if plan.servers else {}),
        "targets": [objects[i] for i in plan.targets],
        "experiment": plain_json(plan.experiment),
    }


def _job(job: Job, objects: Mapping[str, str], records: _Records) -> dict[str, Json]:
    written = records.of(job)
    written["inputs"] = {role: [objects[i] for i in ids] for role, ids in job.inputs.items()}
    return written


def _server(server: Server, objects: Mapping[str, str]) -> dict[str, Json]:
    return {**record(server), "model": None if server.model is None else objects[server.model]}


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which fields of a class are written, and which of them only where they say something."""

    fields: tuple[str, ...]
    filled: frozenset[str]


def _layout(
    of: type[DataclassInstance], *, unwritten: Iterable[str] = (), filled: Iterable[str] = ()
) -> _Layout:
    names = tuple(each.name for each in fields(of) if each.name not in {*unwritten})
    return _Layout(names, frozenset(filled))


_LAYOUTS: Mapping[type, _Layout] = {
    JobDraft: _layout(
        JobDraft,
        unwritten=("name", "software", "view", "inputs", "leases", "extra_identity"),
        filled=("secrets", "local", "expected"),
    ),
    JobBody: _layout(JobBody),
    Job: _layout(Job, unwritten=("inputs",), filled=("memory", "model_size")),
    ModelSize: _layout(ModelSize, filled=("layers", "hidden")),
    JobMemory: _layout(JobMemory, filled=("staging", "card", "room")),
    LeaseDraft: _layout(
        LeaseDraft,
        unwritten=(
            *("software", "capabilities", "inside"),
            *("entry", "scope", "replicas", "placement"),
        ),
        filled=(
            *(
                "silence_s",
                "causes",
                "noise",
                "ranks",
                "settings",
                "devices",
                "cores",
                "copies",
                "needs",
            ),
        ),
    ),
    Lease: _layout(Lease, filled=("server",)),
    **{each: _layout(each) for each in (Ranks, Resources, SourcePlace, ResourceRequest, Session)},
    Server: _layout(Server, filled=("memory",)),
}


_INLINE = frozenset({"body", "draft"})
"""Fields whose own fields are written among those of what holds them."""
_SHARED = frozenset({JobBody, JobDraft, JobMemory, Lease, LeaseDraft, Resources})
"""What many jobs have one object of."""


def record(value: object) -> dict[str, Json]:
    """An object of the plan's model as plain JSON, field by field. Raises TypeError for anything
    else."""
    return _Records().of(value)


@dataclass(frozen=True, slots=True)
class _Records:
    """Records of objects with parts in common: a shared part is written once, and is the same
    object in all of them."""

    _known: dict[object, dict[str, Json]] = field(default_factory=dict)

    def of(self, value: object) -> dict[str, Json]:
        """The record of one object, whose fields are parts."""
        layout = _LAYOUTS.get(type(value))
        if layout is None:
            raise TypeError(f"a {type(value).__name__} has no canonical form")
        written: dict[str, Json] = {}
        for name in layout.fields:
            item = getattr(value, name)
            if name in _INLINE:
                written |= self._shared(item)
            elif item or name not in layout.filled:
                written[name] = self._plain(item)
        return written

    def _plain(self, item: object) -> Json:
        kind = type(item)
        if kind in SCALARS:
            return item  # type: ignore[return-value]
        if kind is tuple:
            return [self._plain(each) for each in item]  # type: ignore[attr-defined]
        if kind in _SHARED:
            return self._shared(item)
        return self.of(item) if kind in _LAYOUTS else plain_json(item, otherwise=self.of)

    def _shared(self, item: object) -> dict[str, Json]:
        known = self._known.get(item)
        if known is None:
            known = self._known[item] = self.of(item)
        return known


def read_document(text: str) -> dict[str, Json]:
    """A plan.json that some run left behind. Raises ValueError when it is none."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is no plan: {error.msg} at line {error.lineno}") from None
    if not isinstance(document, dict) or document.get("plan") != PLAN_VERSION:
        raise ValueError("this is no plan of version 2")
    return document


@paused_collection()
def render_plan(plan: Plan) -> str:
    """The same plan gives the same bytes everywhere."""
    return document_text(plan_document(plan))


def document_text(document: Json) -> str:
    """Plain JSON for a file: sorted keys, two-space indent, a newline at the end."""
    # Not above: software in which plans are only read has no orjson.
    import orjson

    layout = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    try:
        return orjson.dumps(document, option=layout).decode("utf-8")
    except orjson.JSONEncodeError:  # a whole number of more than 64 bits, say
        return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
