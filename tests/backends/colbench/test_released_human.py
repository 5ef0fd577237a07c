"""The released code's requests to the human, by settings and a file of a user's: exactly what is
sent, in words of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.backends.colbench.conftest import BULK_TASK, Opened

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc_backends.environments.colbench.humans import ModelHuman
from agentc_backends.environments.server.model_services import ModelService

# Its places are named as the released file names them.
WORDS = "Play.\n{problem_description}\n\n{hidden_information}\n\nSo far:\n{dialogue_history}\n\nNow"
SYSTEM = "You are a helpful assistant."
SPEC = """
agentc: 1
name: released
environments:
  easy: {backend: colbench_backend, invented_tasks: 20}
  code:
    backend: colbench_backend
    invented_tasks: 20
    human: model
    human_prompt: words.txt
    human_system: You are a helpful assistant.
    human_dialogue: published
    human_seeding: none
    simulator: {server: human, model: nobody}
servers: {human: {backend: scripted, max_model_len: 4096, rules: [{reply: No.}]}}
models:
  nobody: {backend: scratch, chat_format: chatml, corpus: easily, context: 4096, hidden_size: 16,
           layers: 1, heads: 1, vocab_size: 300}
stages:
  easily: {kind: expert, environment: easy, split: train}
  asked: {kind: expert, environment: code, split: train}
"""


def test_the_request_is_the_released_one(opened: Opened, asked: list[dict[str, Any]]) -> None:
    human = ModelHuman(
        ModelService(),
        temperature=0.0,
        max_tokens=4096,
        prompt=WORDS,
        system=SYSTEM,
        dialogue="published",
        seeded=False,
    )
    world = opened(BULK_TASK, human=human)
    world.reset(BULK_TASK.id)
    assert [world.step(each)[0] for each in ("A discount?", "Of how much?")] == [" 1 ", " 2 "]
    blocks = [
        f"user:{BULK_TASK.description}",
        "assistant:A discount?",
        "user: 1 ",
        "assistant:Of how much?",
        "agent:",
    ]
    for body, number in zip(asked, (2, 4), strict=True):
        so_far = "\n\n\n\n".join([*blocks[:number], "agent:"])
        text = (
            f"Play.\n{BULK_TASK.description}\n\n{BULK_TASK.reference}\n\nSo far:\n{so_far}\n\nNow"
        )
        assert body == {
            "model": "sees",
            "messages": [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": text},
            ],
            "max_tokens": 4096,
            "temperature": 0.0,
            "top_p": 1.0,
        }


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (WORDS, ""),
        (WORDS.replace("{hidden_information}", ""), "words.txt has no place {reference}"),
    ],
)
def test_a_spec_says_so(tmp_path: Path, words: str, wrong: str) -> None:
    (tmp_path / "words.txt").write_text(words)
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    result = compile_spec(spec, {}, load_backends())
    told = [each.message.partition(": ")[2] for each in result.diagnostics]
    assert told == ([wrong] if wrong else [])
