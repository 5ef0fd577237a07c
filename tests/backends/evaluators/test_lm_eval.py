"""lm-eval as an evaluator: its command line, the files that lm-eval 0.4.13 wrote (less what they
said of the machine), and what a plan holds of a benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_folder import write_model_folder

from agentc.cli import main
from agentc_backends.evaluators.common.evaluator import EvaluatorError, ModelServer
from agentc_backends.evaluators.lm_eval.job_lm_eval import (
    LmEvalRules,
    lm_eval_command,
    read_results,
)

RECORDED = Path(__file__).parent / "lm_eval_recorded"
SERVER = ModelServer(url="http://h:1/v1", token="t", model="policy", folder=Path("/model"))
RULES: dict[str, Any] = {
    "tasks": ["gsm8k", "tasks/own.yaml"],
    "api": "chat",
    "few_shot": None,
    "system": None,
    "limit": None,
    "temperature": None,
    "max_tokens": None,
    "max_model_len": None,
    "seed": 3,
}


def words(**rules: Any) -> list[str]:
    return lm_eval_command(LmEvalRules(**{**RULES, **rules}), SERVER, 4, Path("/out"))


def after(found: list[str], word: str) -> str:
    return found[found.index(word) + 1]


def test_a_chat_is_asked_at_its_address() -> None:
    found = words()
    assert found[:5] == ["-m", "lm_eval", "run", "--model", "local-chat-completions"]
    assert json.loads(after(found, "--model_args")) == {
        "model": "policy",
        "base_url": "http://h:1/v1/chat/completions",
        "num_concurrent": 4,
        "seed": 3,
    }
    assert after(found, "--tasks") == "gsm8k,tasks/own.yaml"
    assert "--apply_chat_template" in found
    assert not {"--limit", "--num_fewshot", "--gen_kwargs"} & set(found)


def test_completions_count_tokens_as_the_checkpoint_does() -> None:
    found = words(api="completions", max_model_len=512, limit=5, temperature=0.5, max_tokens=7)
    told = json.loads(after(found, "--model_args"))
    assert told["base_url"] == "http://h:1/v1/completions"
    assert (told["tokenizer"], told["max_length"]) == ("/model", 512)
    assert "--apply_chat_template" not in found
    assert after(found, "--limit") == "5"
    assert json.loads(after(found, "--gen_kwargs")) == {"temperature": 0.5, "max_gen_toks": 7}


def test_samples_of_a_task_that_has_several_filters(tmp_path: Path) -> None:
    alone = only(tmp_path, "filters")
    found = read_results(alone, "exact_match,digits")
    assert [(s.task, s.id, s.score) for s in found.samples] == [
        ("filters", "0", 1.0),
        ("filters", "1", 1.0),
        ("filters", "2", 0.0),
    ]
    assert found.release == "lm_eval 0.4.13"
    # BLEU is of all samples together, so that it is no score of one.
    for asked in (None, "exact_match", "bleu"):
        with pytest.raises(EvaluatorError, match=r"exact_match,digits, exact_match,whole$"):
            read_results(alone, asked)


def test_the_only_measure_needs_no_name(tmp_path: Path) -> None:
    alone = only(tmp_path, "sums")
    assert read_results(alone, None).metric == "exact_match,none"
    assert read_results(alone, "exact_match").metric == "exact_match,none"
    [facts] = read_results(alone, None).tasks.values()
    assert facts["few_shot"] == 0
    assert len(facts["hash"]) == 64


def test_tasks_that_share_no_measure_are_told() -> None:
    with pytest.raises(EvaluatorError, match="whole; sums: exact_match,none"):
        read_results(RECORDED, None)


def only(folder: Path, task: str) -> Path:
    """The recorded files as they are where one task alone was evaluated."""
    for path in RECORDED.iterdir():
        if path.name.startswith(f"samples_{task}_"):
            (folder / path.name).write_bytes(path.read_bytes())
        elif path.name.startswith("results_"):
            results = json.loads(path.read_text("utf-8"))
            results["configs"] = {task: results["configs"][task]}
            (folder / path.name).write_text(json.dumps(results), "utf-8")
    return folder


SPEC = """\
agentc: 1
name: own
servers:
  own: {backend: transformers, max_model_len: 512}
  far: {backend: openai, url: "https://api.example.com/v1", model: some}
models: {tiny: {backend: path, path: model}}
stages:
  sums: {kind: benchmark, model: tiny, server: own, tasks: [own.yaml, gsm8k], SETTINGS}
"""
TASK = "task: own\noutput_type: generate_until\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_model_folder(tmp_path / "model")
    (tmp_path / "own.yaml").write_text(TASK)
    (tmp_path / "own.jsonl").write_text("{}\n")
    return tmp_path


Jobs = Callable[[str], dict[str, dict[str, Any]]]


@pytest.fixture
def jobs(folder: Path) -> Jobs:
    """The jobs of the spec with these settings of its stage."""

    def compiled(settings: str) -> dict[str, dict[str, Any]]:
        (folder / "own_spec.yaml").write_text(SPEC.replace("SETTINGS", settings))
        argv = ["bundle", "--bare", str(folder / "own_spec.yaml"), "-o", str(folder / "plan")]
        assert main(argv) == 0
        plan = json.loads((folder / "plan" / "plan.json").read_text("utf-8"))
        return {job["id"]: job for job in plan["jobs"]}

    return compiled


def test_the_texts_of_tasks_are_in_plan_and_key(folder: Path, jobs: Jobs) -> None:
    settings = "sources: [own.jsonl], confidence: 0.9"
    first = jobs(settings)
    scores, metrics = first["sums:scores"], first["sums"]
    assert [file["path"] for file in scores["config"]["files"]] == ["own.yaml", "own.jsonl"]
    assert scores["config"]["files"][0]["text"] == TASK
    assert scores["software"] == "lm_eval"
    assert (scores["produces"], metrics["produces"]) == ("TaskScores", "Metrics")

    # Intervals are made anew, and no model is asked again.
    other = jobs(settings.replace("0.9", "0.8"))
    assert other["sums:scores"]["key"] == scores["key"]
    assert other["sums"]["key"] != metrics["key"]
    assert jobs(f"{settings}, concurrency: 1")["sums:scores"]["key"] == scores["key"]

    (folder / "own.jsonl").write_text("{}\n{}\n")
    assert jobs(settings)["sums:scores"]["key"] != scores["key"]


@pytest.mark.parametrize(
    ("settings", "task", "said"),
    [
        ("options: {api: completions}, server: far", TASK, "serve.openai scores no given tokens"),
        ("limit: 2", "output_type: multiple_choice\n", "own.yaml compares likelihoods of answers"),
        ("sources: [absent.jsonl]", TASK, "there is no readable file absent.jsonl"),
        ("range: [1, 0]", TASK, "it is no range of scores"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str], settings: str, task: str, said: str
) -> None:
    text = SPEC.replace("SETTINGS", settings)
    if "server:" in settings:
        text = text.replace("server: own, ", "")
    (folder / "own.yaml").write_text(task)
    (folder / "own_spec.yaml").write_text(text)
    assert main(["check", str(folder / "own_spec.yaml")]) != 0
    assert said in capsys.readouterr().err
