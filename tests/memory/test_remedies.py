"""What the help of AGC660 says is done to the letter, and the stage compiles and fits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec

TABLE = load_backends()
SPEC: dict[str, Any] = {
    "agentc": 1,
    "name": "demo",
    "models": {
        "big": {
            "backend": "hf",
            "repo": "Qwen/Qwen2.5-7B-Instruct",
            "revision": "a" * 40,
            "chat_format": "chatml",
        },
        "small": {
            "backend": "hf",
            "repo": "Qwen/Qwen2.5-3B-Instruct",
            "revision": "a" * 40,
            "chat_format": "chatml",
        },
    },
    "environments": {"city": {"backend": "guess_my_city"}},
    "servers": {"local": {"backend": "transformers"}},
    "prompts": {"ask": {"instruction": "Guess the city.", "reply_format": "action_only"}},
}
TRAINED = {"lr": 1e-5, "max_length": 4096, "dtype": "bfloat16"}
ONE = {"placement": {"gpus": 1, "gpu": "a100-80gb"}}
EXPERT = {"kind": "expert", "split": "train"}
SFT = {"kind": "sft", "backend": "trl", "model": "big", "data": "expert", **TRAINED}
EXPLORE = {
    "kind": "rollout",
    "model": "small",
    "split": "train",
    "attempts": 4,
    "decode": {"temperature": 1.0, "max_tokens": 64},
}
PAIR = {"kind": "pair", "rollouts": "explore", "sources": "self"}
CRITIC = {"kind": "critic", "model": "big", "data": "best", "beta": 0.1, **TRAINED}
TRAININGS: dict[str, dict[str, Any]] = {
    "micro_batch": {**SFT, "global_batch": 32, "micro_batch": 4, **ONE},
    "every_row": {**SFT, "global_batch": 32, **ONE},
    "uneven": {**SFT, "global_batch": 24, "micro_batch": 3, **ONE},
    "xtuner": {**SFT, "backend": "xtuner", "global_batch": 16, "micro_batch": 2, **ONE},
    "sharded": {**SFT, "sharding": "full", "global_batch": 32, "micro_batch": 4, **ONE},
    # What the help led to before it named `processes`.
    "gpus_without_processes": {
        **SFT, "sharding": "full", "gradient_checkpointing": True, "global_batch": 32,
        "micro_batch": 4, "placement": {"gpus": 2, "gpu": "a100-80gb"},
    },
    "openrlhf": {
        **SFT, "backend": "openrlhf", "global_batch": 32, "micro_batch": 2, **ONE,
        "sharding": "optimizer",
    },
    "critic": {**CRITIC, "global_batch": 8, **ONE},
}  # fmt: skip
HEAD = {**CRITIC, "global_batch": 8, "parameterisation": "value_head", **ONE}


def found(folder: Path, stage: dict[str, Any]) -> dict[str, str]:
    """Codes of what is wrong with the stage, each with its help; entries may lie unused."""
    others: dict[str, Any] = {"expert": EXPERT}
    if stage["kind"] == "critic":
        others = {"explore": EXPLORE, "best": PAIR}
    path = folder / "spec.yaml"
    path.write_text(json.dumps({**SPEC, "stages": {**others, "trained": stage}}))
    told = compile_spec(path, {}, TABLE).diagnostics
    return {each.code: each.fix or "" for each in told if each.code != "AGC411"}


def applied(stage: dict[str, Any], words: str) -> dict[str, Any]:
    """A stage as the help has it."""
    changed = {**stage, "placement": {**stage["placement"]}}
    for name, value in re.findall(r"`(\w+): ([^`]+)`", words):
        known = re.fullmatch("[0-9]+", value)
        scalar = int(value) if known else True if value == "true" else value
        if name == "zero_stage":
            changed["options"] = {name: scalar}
        else:
            changed[name] = scalar
    gpus = re.search(r"on (\d+) GPUs", words)
    if gpus:
        changed["placement"]["gpus"] = int(gpus[1])
    return changed


@pytest.mark.parametrize("stage", TRAININGS.values(), ids=TRAININGS.keys())
def test_what_the_help_says_can_be_done(tmp_path: Path, stage: dict[str, Any]) -> None:
    told = found(tmp_path, stage)
    assert "AGC660" in told
    remedies = told["AGC660"].split("; ")
    for words in remedies:
        assert words.startswith("`"), words
        assert found(tmp_path, applied(stage, words)) == {}, words


def test_a_head_is_told_of_nothing_that_its_trainer_refuses(tmp_path: Path) -> None:
    told = found(tmp_path, HEAD)["AGC660"]
    assert "smaller model" in told
    assert not re.search("sharding|lora", told)
