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
from agentc.plan import keys
from agentc.plan.job import Job, JobBody, Lease, Resources, SoftwareLock, SourcePlace
from agentc.plan.keys import KEY_VERSION, job_key, session_key

VERSION_1: dict[str, Any] = json.loads(
    (Path(__file__).parent / "keys-1.json").read_text(encoding="utf-8")
)
FILE = Path(__file__).parent / "keys-2.json"
PINNED: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
"""For each kind a list of settings, none at its default (`non_default`), with the key that they
give: all that there were when the version was made, then those of each later change.
`python -m tests.identity.test_key_versions` adds what is missing and changes nothing else."""
LOCKS = {name: SoftwareLock(name=name, lock=f"{name}==1.0\n") for name in ("train", "serve")}

_INTERVAL = (
    choice("interval", "How the interval of a mean is made.", ("bootstrap", "normal"), "bootstrap"),
    integer("resamples", "Bootstrap resamples.", 2000, minimum=100),
)
REMOVED: dict[str, tuple[Field, ...]] = {"compare": _INTERVAL, "evaluate": _INTERVAL}
"""Settings of version 1 that version 2 no longer has."""


def whole_job(model: str = "model") -> Job:
    """A job with something in every attribute that enters a key; `model` is an input's name."""
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
            input=model,
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
        inputs={model: ("tuned",), "data": ("a", "b")},
        origin=SourcePlace(file="x.yaml", line=3, column=5),
        leases=(policy, environment),
    )


PRODUCERS = {"tuned": "1" * 32, "a": "2" * 32, "b": "3" * 32}


def key(job: Job, **changes: Any) -> str:
    return job_key(changed(job, **changes), LOCKS, PRODUCERS)


def test_whole_job() -> None:
    assert PINNED["version"] == KEY_VERSION, "pin the new version in a file of its own"
    assert key(whole_job()) == PINNED["job"]
    assert session_key(["1" * 32, "2" * 32]) == PINNED["session"]


@pytest.mark.parametrize("name", PINNED.get("kinds", ()))
def test_settings_of(name: str) -> None:
    """Settings of later changes are absent from the earlier lists, so they must not change their
    keys; each enters a key, except placement and metadata."""
    bare = key_of_kind(name, {})
    fields = {field.name: field for field in fields_of_kind(name)}
    for pinned in PINNED["kinds"][name]:
        assert key_of_kind(name, pinned["values"]) == pinned["key"]
        for setting, value in pinned["values"].items():
            semantic = fields[setting].identity == "semantic"
            assert (key_of_kind(name, {setting: value}) != bare) == semantic, setting


def test_every_setting_is_pinned() -> None:
    assert missing() == {}, "run `python -m tests.identity.test_key_versions`"


def test_what_version_2_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number in every key, and names: of kinds, inputs and settings, of facts about prompts.
    How a job makes a key is that of version 1."""
    monkeypatch.setattr(keys, "KEY_VERSION", 1)
    assert key(whole_job("policy")) == VERSION_1["job"], "which has another name for the model"
    assert session_key(["1" * 32, "2" * 32]) == VERSION_1["session"]
    for name, pinned in VERSION_1["kinds"].items():
        removed = REMOVED.get(name, ())
        assert key_of_kind(name, pinned["values"], removed, "policy") == pinned["key"]


def fields_of_kind(name: str) -> tuple[Field, ...]:
    kind = kind_named(name)
    assert kind is not None
    return kind.fields


def key_of_kind(
    name: str, values: dict[str, Any], more: tuple[Field, ...] = (), model: str = "model"
) -> str:
    """The key of a job with these settings, and all others at their default."""
    table = (*fields_of_kind(name), *more)
    view = OptionView(table=table, values=values)
    for field in table:
        view.get(field.name)
    identity = {"settings": view.identity(), "facts": {}}
    return key(changed(whole_job(model), kind=name, identity=identity))


def missing() -> dict[str, dict[str, Any]]:
    """By kind, the settings that no list of the file has, none at its default."""
    result: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        lists = PINNED.get("kinds", {}).get(kind.name, [])
        pinned = {name for each in lists for name in each["values"]}
        absent = {field.name: non_default(field) for field in kind.fields}
        absent = {name: value for name, value in absent.items() if name not in pinned}
        if absent or not lists:
            result[kind.name] = absent
    return result


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


def add_missing() -> None:
    """Write the file with what is missing in it."""
    pinned = PINNED or {
        "version": KEY_VERSION,
        "kinds": {},
        "job": key(whole_job()),
        "session": session_key(["1" * 32, "2" * 32]),
    }
    for name, values in missing().items():
        lists = pinned["kinds"].setdefault(name, [])
        lists.append({"values": values, "key": key_of_kind(name, values)})
    FILE.write_text(json.dumps(pinned, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    add_missing()
