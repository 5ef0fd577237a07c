"""Literal keys of every key version. The files of a version are never edited: a change that
breaks one gives every user another key for the same work, and needs a new version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.drafted import changed, job_draft, lease_draft

from agentc.backend_api import OptionView
from agentc.kinds import KINDS, Field, kind_named
from agentc.kinds.field import choice, integer
from agentc.plan.job import Job, JobBody, Lease, Resources, SoftwareLock, SourcePlace
from agentc.plan.keys import KEY_VERSION, job_key, session_key

FOLDER = Path(__file__).parent
VERSION_1: dict[str, Any] = json.loads((FOLDER / "keys-1.json").read_text(encoding="utf-8"))
SINCE: dict[str, Any] = json.loads((FOLDER / "keys-1-since.json").read_text(encoding="utf-8"))
"""Kinds and fields that came while version 1 was in use, fields set to what is not their default
(`non_default`); what comes later is added, and what is there is not edited."""
LOCKS = {name: SoftwareLock(name=name, lock=f"{name}==1.0\n") for name in ("train", "serve")}

_INTERVAL = (
    choice("interval", "How the interval of a mean is made.", ("bootstrap", "normal"), "bootstrap"),
    integer("resamples", "Bootstrap resamples.", 2000, minimum=100),
)
RETIRED: dict[str, tuple[Field, ...]] = {"compare": _INTERVAL, "evaluate": _INTERVAL}
"""Fields that a kind had when its keys were made and has no more: no spec sets them, and how the
others enter a key has not changed."""


def whole_job() -> Job:
    """A job with something in every attribute that enters a key."""
    policy = Lease(
        draft=lease_draft(
            role="policy",
            backend="serve.pinned",
            version=2,
            program=("-m", "pinned"),
            identity={"context": 512},
            port="held",
            identity_check="model",
            expect={"a": 1},
            input="model",
            variables={"A": "B"},
            secrets={"TOKEN": "NAME"},
            ready_timeout_s=10.0,
        ),
        software="serve",
    )
    environment = changed(
        policy, role="environment", backend="env.pinned", input=None, identity={"depth": 2}
    )
    return Job(
        body=JobBody(
            draft=job_draft(
                kind="rollout",
                backend="rollout.pinned",
                version=3,
                program=("-m", "pinned"),
                config={"split": "train"},
                inputs={},
                produces="Trajectories",
            ),
            software="train",
            identity={
                "settings": {"split": "train", "decode.temperature": 0.7, "attempts": 4},
                "facts": {"prompt": {"instruction": "Act.\nÄ", "examples": []}},
            },
        ),
        id="rounds.2.explore",
        stage="rounds.2.explore",
        inputs={"model": ("tuned",), "data": ("a", "b")},
        origin=SourcePlace(file="x.yaml", line=3, column=5),
        leases=(policy, environment),
    )


PRODUCERS = {"tuned": "1" * 32, "a": "2" * 32, "b": "3" * 32}


def key(job: Job, **changes: Any) -> str:
    return job_key(changed(job, **changes), LOCKS, PRODUCERS)


def test_version_1_whole_job() -> None:
    assert KEY_VERSION == 1, "add the files of the new version; leave the old ones"
    assert key(whole_job()) == VERSION_1["job"]
    assert session_key(["1" * 32, "2" * 32]) == VERSION_1["session"]


@pytest.mark.parametrize("name", VERSION_1["kinds"])
def test_version_1_settings_of(name: str) -> None:
    """Every field that the kind had when the version was made, set to what is not its default.
    Fields that came later are absent here, so they must not change the key."""
    assert key_of_kind(name, VERSION_1["kinds"][name]["values"]) == VERSION_1["kinds"][name]["key"]


@pytest.mark.parametrize("name", SINCE)
def test_settings_that_came_since(name: str) -> None:
    assert key_of_kind(name, SINCE[name]["values"]) == SINCE[name]["key"]
    # Each of them but placement is a part of it.
    bare = key_of_kind(name, {})
    kind = kind_named(name)
    assert kind is not None
    for field in kind.fields:
        if field.name in SINCE[name]["values"]:
            one = {field.name: SINCE[name]["values"][field.name]}
            assert (key_of_kind(name, one) != bare) == (field.identity == "semantic"), field.name


def key_of_kind(name: str, values: dict[str, Any]) -> str:
    """The key of a job with these settings, and all others at their default."""
    kind = kind_named(name)
    assert kind is not None
    table = (*kind.fields, *RETIRED.get(name, ()))
    view = OptionView(table=table, values=values)
    for field in table:
        view.get(field.name)
    return key(changed(whole_job(), kind=name, identity={"settings": view.identity(), "facts": {}}))


def test_version_1_covers_the_kinds_of_its_time() -> None:
    assert set(VERSION_1["kinds"]) <= {kind.name for kind in KINDS}
    assert len(VERSION_1["kinds"]) == 8


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "evaluate"},
        {"backend": "rollout.other"},
        {"version": 4},
        {"software": "serve"},
        {"identity": {"settings": {}, "facts": {}}},
        {"inputs": {"model": ("tuned",), "data": ("b", "a")}},
        {"inputs": {"model": ("tuned",), "other": ("a", "b")}},
        {"leases": whole_job().leases[:1]},
        {"leases": (changed(whole_job().leases[0], version=9), whole_job().leases[1])},
        {"leases": (changed(whole_job().leases[0], identity={}), whole_job().leases[1])},
        {"leases": (changed(whole_job().leases[0], software="train"), whole_job().leases[1])},
        {"leases": (changed(whole_job().leases[0], backend="serve.b"), whole_job().leases[1])},
        {"leases": (changed(whole_job().leases[0], input="data"), whole_job().leases[1])},
        {"leases": (*whole_job().leases, changed(whole_job().leases[0], role="simulator"))},
        {"leases": (changed(whole_job().leases[0], role="simulator"), whole_job().leases[1])},
    ],
)
def test_what_enters_a_key(changes: dict[str, Any]) -> None:
    assert key(whole_job(), **changes) != key(whole_job())


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "other", "stage": "other", "round": 7},
        {"config": {"anything": True}, "program": ("-m", "elsewhere")},
        {"placement": {"concurrency": 99}, "processes": 8},
        {"resources": Resources(cpus=64, gpus=8, mem_mb=10**6, minutes=9)},
        {"origin": SourcePlace(file="y.yaml", line=9, column=9)},
        {"resume": True, "contract": {"reward_range": [0, 1]}},
        {"leases": tuple(reversed(whole_job().leases))},
        {"leases": (changed(whole_job().leases[0], port="chosen"), whole_job().leases[1])},
        {"leases": (changed(whole_job().leases[0], secrets={}), whole_job().leases[1])},
        # Who asks whom follows from settings, which are in the key.
        {"leases": (whole_job().leases[0], changed(whole_job().leases[1], needs=("simulator",)))},
    ],
)
def test_what_never_enters_a_key(changes: dict[str, Any]) -> None:
    assert key(whole_job(), **changes) == key(whole_job())


def test_whole_numbers_are_one_number() -> None:
    settings = {"settings": {"epochs": 3}, "facts": {}}
    assert key(whole_job(), identity=settings) == key(
        whole_job(), identity={"settings": {"epochs": 3.0}, "facts": {}}
    )
    assert key(whole_job(), identity=settings) != key(
        whole_job(), identity={"settings": {"epochs": True}, "facts": {}}
    )


def test_an_empty_role_is_an_absent_role() -> None:
    inputs = dict(whole_job().inputs)
    assert key(whole_job(), inputs={**inputs, "extra": ()}) == key(whole_job())


def non_default(field: Field) -> Any:
    """A valid value that is not the default, for making the file of a new version."""
    if field.fields:
        return {inner.name: non_default(inner) for inner in field.fields}
    choices = field.schema.get("enum")
    if isinstance(choices, list):
        return next(choice for choice in choices if choice != field.default)
    types = field.schema["type"]
    match types[0] if isinstance(types, list) else types:
        case "boolean":
            return not field.default
        case "string":
            return "0123456789" * 4 if "pattern" in field.schema else "pinned"
        case "array":
            return ["pinned", "second"]
        case "integer":
            return (field.default if isinstance(field.default, int) else 100) + 1
        case _:
            value = (field.default if isinstance(field.default, (int, float)) else 0.25) / 2 + 0.125
            return value if value != field.default else value / 2
