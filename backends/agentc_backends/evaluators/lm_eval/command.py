"""The command line of lm-eval 0.4.13 for a stage. Neighbours: `backend.py`, `job_lm_eval.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentc_backends.evaluators.common.running import ModelServer


@dataclass(frozen=True, slots=True, kw_only=True)
class LmEvalRules:
    """What a stage says of an evaluation by lm-eval; the names are those of its config."""

    tasks: list[str]
    api: Literal["chat", "completions"]
    few_shot: int | None
    system: str | None
    limit: int | None
    temperature: float | None
    max_tokens: int | None
    max_model_len: int | None
    seed: int


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
