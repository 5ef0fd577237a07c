"""Every installed backend, held to the conformance kit that other distributions run too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import (
    Backend,
    BackendTable,
    EnvironmentBackend,
    LeaseDraft,
    OptionView,
    StageBackend,
    load_backends,
)
from agentc.cli import main
from agentc.conformance import (
    BackendUnderTest,
    Bench,
    Check,
    Skipped,
    checks_of,
    declaration,
    lowering,
)
from agentc.conformance.check import Fault
from agentc.conformance.declaration import ask_elsewhere, entry_point
from agentc.conformance.lowering import lowering_request
from agentc.conformance.programs import built_pythons, check_config_read
from agentc.runtime.store.layout import StoreLayout
from agentc_backends.software import INSPECT, LM_EVAL, VERIFIERS

TABLE: BackendTable = load_backends()

GIVEN: Mapping[str, Mapping[str, Any]] = {
    # What a stage must set beyond what is usual for its kind, so that it lowers at all.
    "model.scratch": {"chat_format": "llama-2"},  # unset means chatml
    "model.hf": {"repo": "some/model", "revision": "0123456789" * 4},
    "model.gguf": {"repo": "some/model", "revision": "0123456789" * 4, "file": "sample.gguf"},
    "model.path": {"path": "sample"},
    "encoder.hf": {"repo": "some/encoder", "revision": "0123456789" * 4},
    "encoder.path": {"path": "sample"},
    "text_encoder.hf": {"repo": "some/encoder", "revision": "0123456789" * 4},
    "text_encoder.path": {"path": "sample"},
    "dataset.path": {"path": "sample.jsonl"},
    "dataset.hf": {"repo": "some/data", "revision": "0123456789" * 4, "file": "a.jsonl"},
    "env.agentgym": {"url": "http://127.0.0.1:36008", "splits": {"test": {"range": [0, 9]}}},
    "env.openenv": {"url": "http://127.0.0.1:8000", "splits": {"test": {"range": [0, 9]}}},
    "env.gymnasium": {"id": "FrozenLake-v1", "splits": {"test": {"range": [0, 9]}}},
    "env.mcp": {
        "url": "http://127.0.0.1:8000/mcp",
        "tasks": {"rows": [{"instruction": "Add."}, {"instruction": "Say.", "answer": "4"}]},
        "splits": {"test": {"range": [0, 2]}},
        "success": {"pattern": "done"},
    },
    "env.verifiers": {"taskset": "sums", "splits": {"test": {"range": [0, 9]}}},
    "revise.splice": {"alpha": 0.5},
    "trl.online_rl": {"episodes": 16},  # two groups of its default size
    "script.run": {"run": "sample.py"},
    "benchmark.lm_eval": {"tasks": ["gsm8k"]},
    "benchmark.inspect": {"tasks": ["sample.py"]},
    "rollout.command": {"run": "sample.py"},
    "evaluate.command": {"run": "sample.py"},
    "openrlhf.sft": {"dtype": "bfloat16"},
    "openrlhf.dpo": {"dtype": "bfloat16"},
}
TRIED: Mapping[str, Mapping[str, list[Any]]] = {
    # Second values that cannot be guessed from a setting's schema.
    "dataset.path": {"path": ["other.jsonl"]},
    "model.gguf": {
        "file": ["other.gguf"],
        "package": ["sample==1.0"],
        "sha256": ["0" * 64],
    },
    "benchmark.lm_eval": {"tasks": [["sample.yaml"]], "sources": [["other.jsonl"]]},
    "benchmark.inspect": {
        "tasks": [["other.py"]],
        "sources": [["other.jsonl"]],
        "params": [{"words": "yes"}],
    },
    "script.run": {
        "run": ["other.py"],
        "sources": [["other.py"]],
        "params": [{"most": 1}],
        "requirements": ["sample.lock"],
    },
    "rollout.command": {"run": ["other.py"], "sources": [["other.py"]], "params": [{"most": 1}]},
    "evaluate.command": {"run": ["other.py"], "sources": [["other.py"]], "params": [{"most": 1}]},
    "env.colbench_backend": {
        "tasks": ["functions.jsonl"],
        "human_prompt": ["prompt.txt", "other.txt"],
        "splits": [{"test": {"range": [0, 1]}}, {"test": {"range": [1, 2]}}],
    },
    "env.agentgym": {
        "splits": [{"test": {"range": [0, 8]}}],
        "fingerprint": ["0123456789abcdef" * 2],
        "dialect.reward_range": [[-1, 1]],
        "dialect.success_at": [0.5],
    },
    "env.openenv": {
        "splits": [{"test": {"range": [0, 8]}}],
        "reset": [{"split": "test"}],
        "action": [{"kind": "say"}],
        "fingerprint": ["0123456789abcdef" * 2],
        "reward.success_at": [0.5],
    },
    "env.mcp": {
        "tasks": [{"rows": [{"instruction": "Add."}, {"instruction": "Say.", "answer": "5"}]}],
        "splits": [{"test": {"range": [0, 1]}}],
        "fingerprint": ["0123456789abcdef" * 2],
    },
    "env.gymnasium": {
        "id": ["Taxi-v4"],
        "splits": [{"test": {"range": [0, 8]}}],
        "kwargs": [{"is_slippery": False}],
        "reward.success_at": [0.5],
    },
    "env.verifiers": {
        "taskset": ["other"],
        "splits": [{"test": {"range": [0, 8]}}],
        "sources": [["other.py"]],
        "config": [{"hard": True}],
        "reward.success_at": [0.5],
    },
    "rollout.verifiers": {"harness": [{"id": "null"}]},
    "evaluate.verifiers": {"harness": [{"id": "null"}]},
}
_OF_MODEL = ("human_temperature", "human_max_tokens")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two model directories and two data files, for settings that name files."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("sample", "other"):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(f'{{"name": "{name}"}}')
        turns = [{"role": "user", "content": name}, {"role": "assistant", "content": "Yes."}]
        (folder / f"{name}.jsonl").write_text(json.dumps({"messages": turns}))
        (folder / f"{name}.py").write_text(f'print("{name}")\n')
    (folder / "sample.lock").write_text(f"sample==1.0 --hash=sha256:{'0' * 64}\n")
    for name in ("prompt", "other"):
        text = f"{name}: {{description}} {{reference}} {{dialogue}}"
        (folder / f"{name}.txt").write_text(text)
    functions = Path(__file__).with_name("two_functions.jsonl")
    (folder / "functions.jsonl").write_bytes(functions.read_bytes())
    return folder


def subject_of(backend: Backend, directory: Path) -> BackendUnderTest:
    bench = Bench(table=TABLE, directory=directory)
    return BackendUnderTest(
        backend=backend,
        bench=bench,
        given=GIVEN.get(backend.id, {}),
        tried=TRIED.get(backend.id, {}),
    )


@pytest.mark.parametrize(
    ("name", "asking", "told"),
    [
        ("env.colbench_backend", {"human": "model"}, {*_OF_MODEL}),
        ("env.guess_my_city", {"oracle": "model"}, set()),
        ("env.twenty_questions", {"oracle": "model"}, set()),
    ],
)
def test_settings_of_environments_that_ask_a_model_are_flipped_there(
    name: str, asking: dict[str, Any], told: set[str], models: Path
) -> None:
    """The kit gives them an endpoint to ask, and finds out one that keeps a setting to itself."""
    subject = subject_of(TABLE.backends[name], models)
    outcome = subject.lower(asking)
    assert outcome.complaints() == ""
    assert [lease["role"] for lease in outcome.written[-1]["leases"]] == [
        *("policy", "environment", "simulator")
    ]
    backend = subject.backend
    assert isinstance(backend, EnvironmentBackend)
    assert [role.name for role in backend.simulators] == ["simulator"]

    def silent(options: OptionView) -> LeaseDraft:
        lease = backend.lease(options)
        expected = {**lease.expect, "options": less(lease.expect["options"])}
        return replace(lease, settings=less(lease.settings), expect=expected)

    def less(settings: Any) -> dict[str, Any]:
        return {each: value for each, value in settings.items() if each not in told}

    mute = replace(subject, backend=replace(backend, lease=silent))
    for setting in told:
        check_named(subject, f"setting {setting}").run()
        with pytest.raises(Fault, match="changes nothing that the job receives"):
            check_named(mute, f"setting {setting}").run()


def check_named(subject: BackendUnderTest, name: str) -> Check:
    return next(check for check in checks_of(subject) if check.name == name)


@pytest.fixture(scope="module")
def elsewhere(models: Path) -> Callable[..., list[Any]]:
    """Another process, asked about every backend at once: first what loading them brings along,
    then what they lower to. The kit asks one process for each backend and each of the two."""
    found = [subject_of(backend, models) for backend in TABLE]
    asked: list[dict[str, Any]] = [
        {"load": entry_point(subject.backend.id).value} for subject in found
    ]
    asked += map(lowering_request, found)
    answers = dict(zip(map(str, asked), ask_elsewhere(*asked), strict=True))
    return lambda *questions: [answers[str(each)] for each in questions]


@pytest.mark.parametrize("backend", list(TABLE), ids=lambda backend: backend.id)
def test_conformance(
    backend: Backend,
    models: Path,
    elsewhere: Callable[..., list[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(declaration, "ask_elsewhere", elsewhere)
    monkeypatch.setattr(lowering, "ask_elsewhere", elsewhere)
    checks = checks_of(subject_of(backend, models))
    assert len(checks) > 9
    faults = {check.name: fault for check in checks if (fault := fault_of(check))}
    assert faults == {}


def fault_of(check: Check) -> str:
    """What a check found; that it could try nothing counts too."""
    try:
        check.run()
    except (Fault, Skipped) as error:
        return f"{type(error).__name__}: {error}"
    return ""


INPUTS_FIRST = frozenset(
    # Their programs look at inputs before the config is read whole, as runs of them do.
    {"archer.online_rl", "chai.online_rl", "filtered_bc.online_rl", "ppo.online_rl",
     "trl.online_rl",
     "evaluate.agent", "evaluate.command", "expert.planner", "measure.episodes", "model.scratch",
     "pick.checkpoint", "rollout.command", "rollout.react", "search.mcts", "text_encoder.scratch",
     "trl.critic", "trl.dpo", "trl.sft"}
)  # fmt: skip


def each_program() -> Iterator[Any]:
    """Stage backends; those whose software `make software-long` alone builds are for long."""
    for backend in TABLE:
        if isinstance(backend, StageBackend) and backend.id not in INPUTS_FIRST:
            others = backend.software in (INSPECT, LM_EVAL, VERIFIERS)
            marks = [pytest.mark.long] if others else []
            yield pytest.param(backend, id=backend.id, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("backend", list(each_program()))
def test_the_program_reads_its_whole_config(backend: StageBackend, models: Path) -> None:
    subject = subject_of(backend, models)
    pythons = built_pythons(StoreLayout(".agentc/store"))
    try:
        check_config_read(replace(subject, pythons=pythons))
    except Skipped as reason:
        if "is not built here" not in str(reason):
            raise
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


def test_a_backend_that_refuses_the_plain_stage_is_told_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["dev", "conformance", "openrlhf.sft"]) == 1
    shown = capsys.readouterr().out
    assert "  FAILED   lowers: " in shown
    assert "help: set dtype: bfloat16" in shown
    assert "  skipped  setting dtype: " in shown
    assert main(["dev", "conformance", "openrlhf.sft", "--set", "dtype=bfloat16"]) == 0


def test_content_of_a_model_directory_enters_the_key(tmp_path: Path) -> None:
    subject = subject_of(TABLE.backends["model.path"], tmp_path)
    keys = set()
    for text in ("{}", '{"layers": 2}'):
        (tmp_path / "sample").mkdir(exist_ok=True)
        (tmp_path / "sample/config.json").write_text(text)
        keys.update(subject.lower(subject.start).keys)
    assert len(keys) == 2
    assert subject.lower({"path": "nowhere"}).codes == {"AGC603"}
