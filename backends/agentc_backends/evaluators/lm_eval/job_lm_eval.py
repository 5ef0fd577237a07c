"""Job of `benchmark.lm_eval`: runs lm-eval 0.4.13 against the leased server and keeps what it
wrote: results_<date>.json, and samples_<task>_<date>.jsonl for each task.

`python -m agentc_backends.evaluators.lm_eval.job_lm_eval JOB.json`
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.program.job import Job, iterate_rows, read_json
from agentc_backends.evaluators.common.evaluator import (
    EvaluatorError,
    EvaluatorResult,
    EvaluatorRules,
    ModelServer,
    ScoredSample,
    metric_of_tasks,
    run_command,
    run_evaluator,
    score_of,
)
from agentc_backends.evaluators.lm_eval.settings import LmEvalOptions


def evaluate(job: Job) -> EvaluatorResult:
    """Run it and read its samples, which stay in `samples/` of the artifact."""
    rules = job.config.read_as(LmEvalRules)
    job.config.assert_all_read()
    out = job.out / "samples"
    shutil.rmtree(out, ignore_errors=True)
    server = ModelServer.of(job)
    words = lm_eval_command(rules, server, job.placement["concurrency"], out)
    try:
        run_command(job, rules, words, server, {})
    except EvaluatorError as error:
        hint = "; tasks that compare likelihoods need `options: {api: completions}`"
        raise EvaluatorError(f"{error}{hint if rules.api == 'chat' else ''}") from None
    return read_results(out, rules.metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class LmEvalRules(EvaluatorRules, LmEvalOptions):
    """What a stage says of an evaluation by lm-eval; `max_model_len` is its server's."""

    max_model_len: int | None


def lm_eval_command(
    rules: LmEvalRules, server: ModelServer, concurrency: int, out: Path
) -> list[str]:
    """Words after the interpreter. Samples and results go into a folder of `out`."""
    chat = rules.api == "chat"
    model: dict[str, Any] = {
        "model": server.model,
        "base_url": f"{server.url}/chat/completions" if chat else f"{server.url}/completions",
        "num_concurrent": concurrency,
        "seed": rules.seed,
    }
    if not chat:
        # It counts tokens of contexts itself, by the checkpoint's own tokenizer.
        model |= {"tokenizer_backend": "huggingface", "tokenizer": str(server.folder)}
    if rules.max_model_len is not None:
        model["max_length"] = rules.max_model_len
    words = ["-m", "lm_eval", "run"]
    words += ["--model", "local-chat-completions" if chat else "local-completions"]
    words += ["--model_args", json.dumps(model)]
    # A list with commas: no name has one.
    words += ["--tasks", ",".join(rules.tasks)]
    words += ["--apply_chat_template"] if chat else []
    words += ["--log_samples", "--output_path", str(out), "--seed", str(rules.seed)]
    for word, value in (
        ("--num_fewshot", rules.few_shot),
        ("--limit", rules.limit),
        ("--system_instruction", rules.system),
    ):
        words += [] if value is None else [word, str(value)]
    generation = {"temperature": rules.temperature, "max_gen_toks": rules.max_tokens}
    given = {name: value for name, value in generation.items() if value is not None}
    if given:
        words += ["--gen_kwargs", json.dumps(given)]
    return words


_RESULTS = "results_"


def read_results(out: Path, asked: str | None) -> EvaluatorResult:
    """All samples of all tasks, scored by the measure that was asked for. Raises EvaluatorError
    where there is none such, or where a measure is of all samples together (perplexity, F1)."""
    found = sorted(out.rglob(f"{_RESULTS}*.json"))
    if len(found) != 1:
        raise EvaluatorError(f"lm-eval left {len(found)} files of results, not one")
    results = read_json(found[0])
    date = found[0].stem.removeprefix(_RESULTS)
    files = {
        task: found[0].with_name(f"samples_{task}_{date}.jsonl") for task in results["configs"]
    }
    # A group of tasks has none of its own.
    by_task = {task: _scores(path) for task, path in files.items() if path.is_file()}
    if not by_task:
        raise EvaluatorError("lm-eval left no samples")
    metric = metric_of_tasks(asked, by_task)
    return EvaluatorResult(
        release=f"lm_eval {results['lm_eval_version']}",
        metric=metric,
        tasks={task: _facts(task, results) for task in by_task},
        samples=[
            ScoredSample(task=task, id=number, score=score)
            for task, scores in by_task.items()
            for number, score in scores[metric].items()
        ],
    )


def _scores(path: Path) -> dict[str, dict[str, float]]:
    """By measure and sample; measures that give no number of every sample are left out."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    no_number: set[str] = set()
    for row in iterate_rows(path):
        for name in row["metrics"]:
            metric, score = f"{name},{row['filter']}", score_of(row.get(name))
            if score is None:
                no_number.add(metric)
            else:
                found[metric][str(row["doc_id"])] = score
    return {metric: scores for metric, scores in found.items() if metric not in no_number}


def _facts(task: str, results: Mapping[str, Any]) -> dict[str, Any]:
    """Its version and examples, and lm-eval's digest of its samples, prompts and answers."""
    return {
        "version": results["versions"].get(task),
        "few_shot": results["n-shot"].get(task),
        "hash": results.get("task_hashes", {}).get(task),
    }


if __name__ == "__main__":
    sys.exit(run_evaluator("lm_eval", evaluate))
