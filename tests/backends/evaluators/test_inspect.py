"""inspect as an evaluator: its command line, a log that inspect 0.3.285 wrote (less its events),
and what a plan holds of a task of one's own. `read.json` is what the log says by inspect's reader,
which a `long` test repeats where inspect is."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.built_software import ROOT, built_python
from tests.support.model_folder import write_model_folder

from agentc.cli import main
from agentc_backends.evaluators.common.evaluator import EvaluatorError, ModelServer
from agentc_backends.evaluators.inspect_ai.job_inspect import (
    InspectRules,
    inspect_command,
    inspect_variables,
)
from agentc_backends.evaluators.inspect_ai.logs import LoggedSample, LoggedTask, evaluation_of_logs
from agentc_backends.software import INSPECT

FOLDER = Path(__file__).parent
RECORDED = FOLDER / "inspect_recorded"
SERVER = ModelServer(url="http://h:1/v1", token="secret", model="policy", folder=Path("/model"))
RULES: dict[str, Any] = {
    "tasks": ["sums.py@sums", "inspect_evals/gsm8k"],
    "params": {},
    "epochs": 2,
    "system": None,
    "limit": None,
    "temperature": None,
    "max_tokens": None,
    "seed": 3,
}


def words(attempt: int = 0, **rules: Any) -> list[str]:
    told = InspectRules(**{**RULES, **rules})
    return inspect_command(told, SERVER, 4, attempt, Path("/out"), Path("/params.json"))


def after(found: list[str], word: str) -> str:
    return found[found.index(word) + 1]


def test_each_attempt_has_a_seed_of_its_own() -> None:
    found = words()
    assert found[:6] == ["-P", "-m", "inspect_ai", "eval", "sums.py@sums", "inspect_evals/gsm8k"]
    assert after(found, "--model") == "openai-api/leased/policy"
    assert [after(words(n), "--seed") for n in (0, 1)] == ["3", "4"]
    assert after(found, "--epochs") == "1"
    assert after(found, "--max-connections") == "4"
    assert not {"--limit", "--task-config", "--temperature", "--system-message"} & set(found)


def test_what_the_stage_says_is_told() -> None:
    found = words(params={"a": [1]}, limit=5, temperature=0.0, max_tokens=7, system="Reckon.")
    assert after(found, "--task-config") == "/params.json"
    assert after(found, "--limit") == "5"
    assert after(found, "--temperature") == "0.0"
    assert after(found, "--max-tokens") == "7"
    assert after(found, "--system-message") == "Reckon."


def test_the_server_is_told_by_variables_and_no_setting_of_others_is_kept() -> None:
    told = inspect_variables(SERVER, ["HOME", "INSPECT_EVAL_LIMIT"], Path("/scratch"))
    assert (told["LEASED_BASE_URL"], told["LEASED_API_KEY"]) == ("http://h:1/v1", "secret")
    assert told["INSPECT_EVAL_LIMIT"] is None
    # Replies of another checkpoint at the same address would be taken from a shared cache.
    assert told["INSPECT_CACHE_DIR"] == "/scratch/cache"
    assert "HOME" not in told
    assert not [word for word in words() if "secret" in word or "http" in word]


@pytest.fixture
def log() -> LoggedTask:
    told = json.loads((RECORDED / "read.json").read_text("utf-8"))
    samples = tuple(LoggedSample(**sample) for sample in told.pop("samples"))
    return LoggedTask(**told, samples=samples)


def test_attempts_are_scored_by_the_measure_asked_for(log: LoggedTask) -> None:
    found = evaluation_of_logs([[log], [log]], {"polite": True}, "letter")
    scores = [(sample.id, sample.attempt, sample.score) for sample in found.samples]
    # C, P, I and N.
    once = [("s0", 1.0), ("s1", 0.5), ("s2", 0.0), ("s3", 0.0)]
    assert scores == [(name, attempt, score) for attempt in (0, 1) for name, score in once]
    assert (found.release, found.metric) == ("inspect 0.3.285", "letter")
    assert found.tasks["graded"]["params"] == {"polite": True}
    assert len(found.tasks["graded"]["hash"]) == 64


def test_a_sample_that_its_scorer_left_out_has_no_score(log: LoggedTask) -> None:
    found = evaluation_of_logs([[log]], {}, "seldom")
    assert [sample.score for sample in found.samples] == [0.25, None, 0.25, 0.25]
    assert evaluation_of_logs([[log]], {}, "parts,length").samples[0].score == 1.0


def test_words_are_no_scores(log: LoggedTask) -> None:
    known = r"letter, match, parts,length, parts,yes, seldom$"
    for asked in ("grade", "parts", None):
        with pytest.raises(EvaluatorError, match=known):
            evaluation_of_logs([[log]], {}, asked)


def test_what_is_no_whole_evaluation_is_refused(log: LoggedTask) -> None:
    broken = replace(log, status="error", error="ValueError('boom')")
    with pytest.raises(EvaluatorError, match="graded ended with status error: ValueError"):
        evaluation_of_logs([[log], [broken]], {}, "letter")
    with pytest.raises(EvaluatorError, match="the samples of graded were others"):
        evaluation_of_logs([[log], [replace(log, digest="0")]], {}, "letter")
    with pytest.raises(EvaluatorError, match=r"no task takes rude; .* graded: polite"):
        evaluation_of_logs([[log]], {"polite": 1, "rude": 1}, "letter")
    with pytest.raises(EvaluatorError, match="two tasks have one name"):
        evaluation_of_logs([[log, log]], {}, "letter")


@pytest.mark.long
def test_the_log_says_so_by_inspects_own_reader() -> None:
    done = subprocess.run(
        [built_python(INSPECT), str(FOLDER / "inspect_reader.py"), str(RECORDED / "graded.json")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'compiler'}{os.pathsep}{ROOT / 'backends'}"},
    )
    assert done.returncode == 0, done.stderr
    # As texts: NaN is no other NaN's equal.
    read = json.loads((RECORDED / "read.json").read_text("utf-8"))
    assert json.dumps(json.loads(done.stdout)) == json.dumps(read)


SPEC = """\
agentc: 1
name: own
servers: {own: {backend: scripted}}
models: {tiny: {backend: path, path: model}}
stages:
  sums: {kind: benchmark, BACKEND, model: tiny, server: own, TASKS}
"""


def test_a_file_of_ones_own_is_in_plan_and_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTC_ALLOW_PATH", str(tmp_path))
    folder = tmp_path / "specs"
    write_model_folder(folder / "model")
    (tmp_path / "sums.py").write_text("first = 1\n")

    def scores(tasks: str) -> dict[str, Any]:
        (folder / "own.yaml").write_text(SPEC.replace("BACKEND, ", "").replace("TASKS", tasks))
        assert main(["bundle", "--bare", str(folder / "own.yaml"), "-o", str(folder / "plan")]) == 0
        plan = json.loads((folder / "plan" / "plan.json").read_text("utf-8"))
        return next(job for job in plan["jobs"] if job["id"] == "sums:scores")

    tasks = 'tasks: ["../sums.py@sums", inspect_evals/gsm8k]'
    found = scores(tasks)
    # By the form of its file it is inspect's, which starts in a folder that has it under this name.
    assert found["config"]["tasks"] == ["up/sums.py@sums", "inspect_evals/gsm8k"]
    assert found["config"]["files"] == [{"path": "up/sums.py", "text": "first = 1\n"}]
    assert found["software"] == "inspect"
    keys = {found["key"], *(scores(f"{tasks}, options: {{{o}}}")["key"] for o in OPTIONS)}
    (tmp_path / "sums.py").write_text("second = 2\n")
    keys.add(scores(tasks)["key"])
    assert len(keys) == 2 + len(OPTIONS)


OPTIONS = ("params: {a: 1}", "epochs: 2", "system: Reckon.")


@pytest.mark.parametrize(
    ("backend", "task", "said"),
    [
        ("inspect", "absent.py@sums", "there is no readable file absent.py"),
        ("inspect", "sums.yaml", "its files of tasks are Python, `sums.py` or `sums.py@task`"),
        ("lm_eval", "sums.py", "its files of tasks are YAML, `sums.yaml`, and sums.py is none"),
    ],
)
def test_a_task_that_cannot_be_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], backend: str, task: str, said: str
) -> None:
    text = SPEC.replace("BACKEND", f"backend: {backend}").replace("TASKS", f'tasks: ["{task}"]')
    write_model_folder(tmp_path / "model")
    (tmp_path / "own.yaml").write_text(text)
    assert main(["check", str(tmp_path / "own.yaml")]) != 0
    assert said in capsys.readouterr().err
