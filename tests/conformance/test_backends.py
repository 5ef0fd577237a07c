"""Every installed backend, held to the conformance kit that other distributions run too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import Backend, BackendTable, StageBackend, load_backends
from agentc.cli import main
from agentc.conformance import BackendUnderTest, Bench, Check, Skipped, checks_of
from agentc.conformance.programs import built_pythons, check_config_read
from agentc.runtime.store.layout import StoreLayout

TABLE: BackendTable = load_backends()

GIVEN: Mapping[str, Mapping[str, Any]] = {
    # What a stage must set beyond what is usual for its kind, so that it lowers at all.
    "model.scratch": {"chat_format": "llama-2"},  # unset means chatml
    "model.hf": {"repo": "some/model", "revision": "0123456789" * 4},
    "model.path": {"path": "sample"},
    "dataset.path": {"path": "sample.jsonl"},
    "dataset.hf": {"repo": "some/data", "revision": "0123456789" * 4, "file": "a.jsonl"},
    "env.agentgym": {"url": "http://127.0.0.1:36008", "splits": {"test": {"range": [0, 9]}}},
    "revise.splice": {"alpha": 0.5},
    "openrlhf.sft": {"dtype": "bfloat16"},
    "openrlhf.dpo": {"dtype": "bfloat16"},
}
TRIED: Mapping[str, Mapping[str, list[Any]]] = {
    # Second values that cannot be guessed from a setting's schema.
    "dataset.path": {"path": ["other.jsonl"]},
    "env.agentgym": {
        "splits": [{"test": {"range": [0, 8]}}],
        "fingerprint": ["0123456789abcdef" * 2],
        "dialect.reward_range": [[-1, 1]],
        "dialect.success_at": [0.5],
    },
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two model directories and two data files, for settings that name files."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("sample", "other"):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(f'{{"name": "{name}"}}')
        (folder / f"{name}.jsonl").write_text(f'{{"name": "{name}"}}\n')
    return folder


def subject_of(backend: Backend, directory: Path) -> BackendUnderTest:
    bench = Bench(table=TABLE, directory=directory)
    return BackendUnderTest(
        backend=backend,
        bench=bench,
        given=GIVEN.get(backend.id, {}),
        tried=TRIED.get(backend.id, {}),
    )


def all_checks() -> Iterator[Any]:
    for backend in TABLE:
        for check in checks_of(subject_of(backend, Path())):
            yield pytest.param(backend, check.name, id=f"{backend.id}-{check.name}")


def check_named(subject: BackendUnderTest, name: str) -> Check:
    return next(check for check in checks_of(subject) if check.name == name)


@pytest.mark.parametrize(("backend", "name"), list(all_checks()))
def test_conformance(backend: Backend, name: str, models: Path) -> None:
    check_named(subject_of(backend, models), name).run()


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", [b for b in TABLE if isinstance(b, StageBackend)], ids=lambda b: b.id
)
def test_the_program_reads_its_whole_config(backend: StageBackend, models: Path) -> None:
    subject = subject_of(backend, models)
    pythons = built_pythons(StoreLayout(".agentc/store"))
    try:
        check_config_read(
            BackendUnderTest(
                backend=backend, bench=subject.bench, given=subject.given, pythons=pythons
            )
        )
    except Skipped as reason:
        pytest.skip(str(reason))


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
    subject = subject_of(TABLE.backends[name], models)
    field = next(f for f in subject.table if f.name == path)
    value = next(subject.flips(field, path, subject.start))
    outcome = subject.lower({**subject.start, path: value})
    notes = [note for found in outcome.diagnostics for note in found.notes]
    assert outcome.codes == {"AGC602"}
    assert any(f"`{able}`" in note for note in notes)


@pytest.mark.parametrize(
    "name", ["expert.planner", "rollout.react", "search.mcts", "evaluate.agent"]
)
def test_the_prompt_enters_the_key(name: str, models: Path) -> None:
    subject = subject_of(TABLE.backends[name], models)
    one, other = (subject.lower(subject.start, instruction=text) for text in ("A", "B"))
    assert one.keys[-1] != other.keys[-1]
    assert one.written != other.written


def test_a_backend_that_refuses_the_plain_stage_is_told_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["conformance", "openrlhf.sft"]) == 1
    shown = capsys.readouterr().out
    assert "  FAILED   lowers: " in shown
    assert "help: set dtype: bfloat16" in shown
    assert "  skipped  setting dtype: " in shown
    assert main(["conformance", "openrlhf.sft", "--set", "dtype=bfloat16"]) == 0


def test_content_of_a_model_directory_enters_the_key(tmp_path: Path) -> None:
    subject = subject_of(TABLE.backends["model.path"], tmp_path)
    keys = set()
    for text in ("{}", '{"layers": 2}'):
        (tmp_path / "sample").mkdir(exist_ok=True)
        (tmp_path / "sample/config.json").write_text(text)
        keys.update(subject.lower(subject.start).keys)
    assert len(keys) == 2
    assert subject.lower({"path": "nowhere"}).codes == {"AGC603"}
