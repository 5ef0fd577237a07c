"""Candidates ranked by a critic with a head, held against plain forward passes over whole rows."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from tests.backends.conftest import write_job
from tests.torch.trl.jobs import small_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from agentc.program.job import Job, read_rows
from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.agents.rank.job_value_head import rank
from agentc_backends.data.chat.rows import MaskRules
from agentc_backends.data.chat.tokens import Encoder, load_encoder
from agentc_backends.data.models.value_head import new_head, read_head, write_head
from agentc_backends.trainers.trl.job_critic import pair_items, turn_items

sys.path.insert(0, str(Path(__file__).parents[1] / "transformers_server"))

from tiny_models import CONFIGS, make_model

TEMPLATE = "In light that the answer is: {privileged}."
NOTES = {
    "parameterisation": "value_head",
    "normalisation": "none",
    "template": TEMPLATE,
    "reference": "model/policy",
    "reference_sees": "history",
    "beta": 0.1,
    "objective": "bradley_terry",
}
REPLIES = ("Action: get oak", "Action: craft planks from logs", "no", "Action: get 4 oak log")
SECRET = "craft seven planks"


def critic(folder: Path, pooling: str) -> Path:
    """A model with random weights and a head that is not near zero."""
    make_model(folder, CONFIGS["llama-gqa"], seed=0)
    width = json.loads((folder / "config.json").read_text("utf-8"))["hidden_size"]
    head = new_head(width, seed=5)
    head.weight.data *= 50
    head.bias.data += 0.25
    write_head(folder, head)
    (folder / "agentc_critic.json").write_text(json.dumps({**NOTES, "pooling": pooling}), "utf-8")
    return folder


def turns(encoder: Encoder) -> list[dict[str, Any]]:
    """Three turns with four candidates, of which one was cut, and one that is too long."""
    found = []
    for task in range(4):
        text = f"goal {task} craft oak planks" + " oak planks" * (2000 if task == 3 else task)
        tokens = [encoder.tokenizer.encode(each, add_special_tokens=False) for each in REPLIES]
        tokens = [ids if n == 1 else [*ids, encoder.pad] for n, ids in enumerate(tokens)]
        found.append(
            {
                "id": f"t{task}#0@0", "task_id": f"t{task}", "attempt": 0, "turn": 0,
                "split": "train", "prompt": [{"role": "user", "content": text}],
                "prompt_length": 1, "taken": REPLIES[0], "reward": 0.5, "end": "sampled",
                "candidates_unique": len(REPLIES),
                "candidates": [
                    {"text": text, "tokens": ids, "logprob_sum": -1.0, "logprob_n": len(ids),
                     "seed": 0, "stop": "stop"}
                    for text, ids in zip(REPLIES, tokens, strict=True)
                ],
            }
        )  # fmt: skip
    return found


def written(folder: Path, name: str, rows: Sequence[dict[str, Any]]) -> Path:
    folder.mkdir()
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_values_are_those_of_whole_rows(pooling: str, tmp_path: Path) -> None:
    model = critic(tmp_path / "critic", pooling)
    encoder = load_encoder(model)
    drawn = turns(encoder)
    hidden = [{"id": f"t{n}", "task_id": f"t{n}", "text": SECRET} for n in range(4)]
    inputs = {
        "candidates": [written(tmp_path / "drawn", "candidates.jsonl", drawn)],
        "critic": [model],
        "privileged": [written(tmp_path / "hidden", "privileged.jsonl", hidden)],
    }
    job = Job(write_job(tmp_path / "job", {}, inputs=inputs))
    asyncio.run(rank(job))  # type: ignore[arg-type]
    data = tmp_path / "job" / "data"
    check_artifact("RewardedTurns", data, {}, {"critic": [str(model)]}, {})

    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    head = read_head(model)
    *ranked, long = read_rows(data / "turns.jsonl")
    assert (long["end"], long["candidates"]) == ("overflow", [])
    pair_items = 0
    for turn in ranked:
        [message] = turn["prompt"]
        told = f"In light that the answer is: {SECRET}.\n\n{message['content']}"
        before = Encoder(AutoTokenizer.from_pretrained(model), "chatml").encode_prompt(
            [{"role": "user", "content": told}]
        )
        for candidate in turn["candidates"]:
            ids = torch.tensor([[*before, *candidate["tokens"]]])
            with torch.no_grad():
                states = network(ids, output_hidden_states=True).hidden_states[-1][0]
                state = states.mean(dim=0) if pooling == "mean" else states[-1]
                assert candidate["advantage"] == pytest.approx(float(head(state)), abs=1e-4)
            pair_items += 1
    assert pair_items == 12
    values = {c["advantage"] for turn in ranked for c in turn["candidates"]}
    assert len(values) == 12, "the head told candidates apart"

    # What was finished is not computed again, and gives the same rows; nothing hidden is kept.
    first = (data / "turns.jsonl").read_bytes()
    journal = tmp_path / "job" / "work" / "values.jsonl"
    kept = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(kept[:2]) + kept[2][:9])
    asyncio.run(rank(job))  # type: ignore[arg-type]
    assert (data / "turns.jsonl").read_bytes() == first
    assert journal.read_bytes() == b"".join(kept)
    for path in (tmp_path / "job").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("chat_format", "said"), [("chatml", "{}"), ("llama-2", " {} "), ("vicuna", " {}")]
)
def test_a_head_ranks_rows_as_it_was_trained_on(
    chat_format: str, said: str, tmp_path: Path
) -> None:
    """To the token: nothing that a format writes behind a reply is in one and not in the other.
    `said` is a reply as a policy of the format draws it, before its end."""
    encoder = load_encoder(small_model(tmp_path / "model", chat_format=chat_format))
    prompt = [{"role": "user", "content": "craft"}]
    sides = {
        "chosen": [{"role": "assistant", "content": "get torch"}],
        "rejected": [
            {"role": "assistant", "content": "get stick"},
            {"role": "user", "content": "no"},
            {"role": "assistant", "content": "get chest", "cut": True},
        ],
    }
    row = {"id": "a", "prompt": prompt, **sides, "chosen_id": "a#0", "rejected_id": "a#1",
           "chosen_reward": 1.0, "rejected_reward": 0.0}  # fmt: skip
    rules = MaskRules(loss_on="assistant", max_length=512, truncation="error")
    [pair], _ = pair_items(encoder, [row], rules)
    after, _ = turn_items(encoder, [row], rules)
    expected = []
    for side in sides.values():
        for place, reply in enumerate(side):
            if reply["role"] == "assistant":
                before = encoder.encode_prompt([*prompt, *side[:place]])
                text = said.format(reply["content"])
                text = text.rstrip() if reply.get("cut") else text
                drawn = encoder.tokenizer.encode(text, add_special_tokens=False)
                end = [] if reply.get("cut") else [encoder.tokenizer.eos_token_id]
                expected.append([*before, *drawn, *end])
    assert [item.ids for item in after] == [[ids] for ids in expected]
    assert pair.ids == [expected[0], expected[2]]
