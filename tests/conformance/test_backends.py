"""Every installed backend, held to what the compiler promises about settings.

Each field of a backend's kind and each of its own options is flipped. The flip changes what the
job is told and, if it is semantic, its key; or it is refused with names of backends that honour
it. A setting that only matters together with another is flipped there as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bench import Outcome, compile_resource, compile_stage
from flips import leaves, others, sample, value_at, with_value

from agentc.backend_api import (
    BackendTable,
    EnvironmentBackend,
    ServerBackend,
    StageBackend,
    load_backends,
)
from agentc.kinds import kind_named
from agentc.kinds.field import Field

TABLE: BackendTable = load_backends()
STAGES = [b for b in TABLE if isinstance(b, StageBackend)]
RESOURCES = [b for b in TABLE if isinstance(b, (EnvironmentBackend, ServerBackend))]

Try = Callable[[Mapping[str, Any]], Outcome]

START: dict[str, dict[str, Any]] = {
    # What a stage must set beyond its required fields, so that it lowers at all.
    "model.scratch": {"chat_format": "llama-2"},  # unset means chatml
    "model.hf": {"repo": "some/model", "revision": "0123456789" * 4},
    "model.path": {"path": "model"},
    "expert.planner": {"split": "train"},
    "rollout.react": {"split": "train"},
    "evaluate.agent": {"split": "train"},
    "trl.sft": {"lr": 1e-3, "global_batch": 8, "max_length": 64},
    "trl.dpo": {"lr": 1e-3, "global_batch": 8, "max_length": 64, "beta": 0.1},
}
UNAVAILABLE_VALUES = {
    # Values that only this bench's environment and files make valid.
    "split": ["validation", "test"],
    "path": ["other"],
}


def table_of(backend: StageBackend) -> tuple[Field, ...]:
    kind = kind_named(backend.kind)
    assert kind is not None
    return (*kind.fields, *backend.options)


def start_of(backend: StageBackend) -> dict[str, Any]:
    required = {f.name: sample(f) for f in table_of(backend) if f.required}
    return {**required, **START.get(backend.id, {})}


def stage_flips() -> Iterator[Any]:
    for backend in STAGES:
        for path, field, identity in leaves(table_of(backend)):
            yield pytest.param(backend, path, field, identity, id=f"{backend.id}-{path}")


def resource_flips() -> Iterator[Any]:
    for backend in RESOURCES:
        for path, field, identity in leaves(backend.fields):
            yield pytest.param(backend, path, field, identity, id=f"{backend.id}-{path}")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two model directories, for what reads files."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("model", "other"):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(f'{{"name": "{name}"}}')
    return folder


@pytest.mark.parametrize("backend", STAGES, ids=lambda b: b.id)
def test_a_stage_with_what_it_needs_lowers(backend: StageBackend, models: Path) -> None:
    outcome = compile_stage(backend, TABLE, start_of(backend), directory=models)
    assert outcome.diagnostics == ()
    assert outcome.jobs
    assert outcome.jobs[-1].id == "tested", "the last job yields the stage's artifact"


@pytest.mark.parametrize(("backend", "path", "field", "identity"), list(stage_flips()))
def test_flipping_a_setting_of_a_stage(
    backend: StageBackend, path: str, field: Field, identity: str, models: Path
) -> None:
    def attempt(values: Mapping[str, Any]) -> Outcome:
        return compile_stage(backend, TABLE, values, directory=models)

    rivals = [b.id for b in TABLE.stage_backends(backend.kind) if b is not backend]
    check_flip(attempt, start_of(backend), table_of(backend), path, field, identity, rivals)


@pytest.mark.parametrize(("backend", "path", "field", "identity"), list(resource_flips()))
def test_flipping_a_setting_of_an_environment_or_server(
    backend: EnvironmentBackend | ServerBackend, path: str, field: Field, identity: str
) -> None:
    def attempt(values: Mapping[str, Any]) -> Outcome:
        return compile_resource(backend, TABLE, values)

    start = {f.name: sample(f) for f in backend.fields if f.required}
    rivals = [b.id for b in TABLE.servers() if b is not backend]
    check_flip(attempt, start, backend.fields, path, field, identity, rivals)


def check_flip(
    attempt: Try,
    start: dict[str, Any],
    table: tuple[Field, ...],
    path: str,
    field: Field,
    identity: str,
    rivals: list[str],
) -> None:
    flipped = with_value(start, path, next(flips(field, path, start)))
    before, after = attempt(start), attempt(flipped)
    if "AGC602" in after.codes:
        message = next(d for d in after.diagnostics if d.code == "AGC602")
        assert f"`{path}`" in message.message
        note = " ".join(message.notes)
        if not note:  # then the message gives the reason, which lies in another setting
            assert "does not read it here" not in message.message
        else:
            assert "would honour it" in note
            assert any(f"`{name}`" in note for name in rivals) or "no other" in note
        found = find_context(attempt, start, table, path, field)
        if found is None:
            return  # nothing here reads it, and the compiler says so
        start = found
        before = attempt(start)
    accepted = []
    for value in flips(field, path, start):
        after = attempt(with_value(start, path, value))
        if after.codes:
            assert after.codes <= {"AGC602", "AGC603"}, after.diagnostics
            assert all(d.message for d in after.diagnostics)
            continue
        accepted.append(value)
        assert after.written != before.written, f"{path}={value!r} changes nothing that is emitted"
        if identity == "semantic":
            assert after.keys[-1] != before.keys[-1], f"{path}={value!r} leaves the key as it was"
        else:
            assert after.keys == before.keys, f"{path} is {identity} and changes a key"
    refusals = {d.code for d in after.diagnostics}
    assert accepted or "AGC603" in refusals, f"no value of {path} was accepted, none refused"


def flips(field: Field, path: str, values: Mapping[str, Any]) -> Iterator[Any]:
    if path in UNAVAILABLE_VALUES:
        yield from UNAVAILABLE_VALUES[path]
    else:
        yield from others(field, value_at(values, path, field))


def find_context(
    attempt: Try, start: dict[str, Any], table: tuple[Field, ...], path: str, field: Field
) -> dict[str, Any] | None:
    """Values of one other setting under which this one is read."""
    for other, other_field, _ in leaves(table):
        if other == path:
            continue
        for value in flips(other_field, other, start):
            context = with_value(start, other, value)
            if attempt(context).codes:
                continue
            after = attempt(with_value(context, path, next(flips(field, path, context))))
            if not after.codes:
                return context
    return None


@pytest.mark.parametrize(
    ("name", "path", "able"),
    [
        ("model.scratch", "repo", "model.hf"),
        ("model.hf", "layers", "model.scratch"),
        ("model.path", "revision", "model.hf"),
        ("model.hf", "path", "model.path"),
    ],
)
def test_the_backends_that_would_honour_a_setting_are_named(
    name: str, path: str, able: str, models: Path
) -> None:
    backend = TABLE.backends[name]
    assert isinstance(backend, StageBackend)
    field = next(f for f in table_of(backend) if f.name == path)
    start = start_of(backend)
    values = with_value(start, path, next(flips(field, path, start)))
    outcome = compile_stage(backend, TABLE, values, directory=models)
    notes = [note for found in outcome.diagnostics for note in found.notes]
    assert outcome.codes == {"AGC602"}
    assert any(f"`{able}`" in note for note in notes)


@pytest.mark.parametrize(
    "backend",
    [b for b in STAGES if b.kind in ("expert", "rollout", "evaluate")],
    ids=lambda b: b.id,
)
def test_the_prompt_enters_the_key(backend: StageBackend) -> None:
    one, other = (
        compile_stage(backend, TABLE, start_of(backend), instruction=text) for text in ("A", "B")
    )
    assert one.keys[-1] != other.keys[-1]
    assert one.written != other.written


def test_content_of_a_model_directory_enters_the_key(tmp_path: Path) -> None:
    backend = TABLE.backends["model.path"]
    assert isinstance(backend, StageBackend)
    keys = set()
    for text in ("{}", '{"layers": 2}'):
        (tmp_path / "model").mkdir(exist_ok=True)
        (tmp_path / "model/config.json").write_text(text)
        keys.update(compile_stage(backend, TABLE, {"path": "model"}, directory=tmp_path).keys)
    assert len(keys) == 2
    missing = compile_stage(backend, TABLE, {"path": "nowhere"}, directory=tmp_path)
    assert missing.codes == {"AGC603"}


@pytest.mark.parametrize("backend", STAGES, ids=lambda b: b.id)
def test_options_do_not_hide_fields_of_the_kind(backend: StageBackend) -> None:
    names = [field.name for field in table_of(backend)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("backend", list(TABLE), ids=lambda b: b.id)
def test_backends_describe_themselves(backend: Any) -> None:
    fields = backend.options if isinstance(backend, StageBackend) else backend.fields
    assert backend.doc.endswith(".")
    assert all(field.doc.strip() for field in fields)
    assert backend.version >= 1
