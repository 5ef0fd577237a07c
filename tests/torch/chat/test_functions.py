"""Rows with functions: trainers see the tokens that a server shows a model, and train the calls
with what ends them, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

import trl
from transformers import PreTrainedTokenizerFast

from agentc_backends.agents.common.prompts import (
    EpisodePrompt,
    action_call,
    observation_message,
    opening_messages,
)
from agentc_backends.data.chat.formats import FORMATS, FormatError, format_named
from agentc_backends.data.chat.rows import MaskRules, encode_pairs, encode_rows
from agentc_backends.data.chat.tokens import Encoder
from agentc_backends.data.chat.tool_calls import request_of
from agentc_backends.data.models.vocabulary import corpus_texts, train_tokenizer
from agentc_backends.openai_api.chat_text import ChatText

TEMPLATES = Path(trl.__file__).parent / "chat_templates"
RULES = MaskRules(loss_on="all_replies", max_length=4096, truncation="error")
CALLS = [action_call("inventory"), "I need a log.\n" + action_call("get 1 oak log")]
# Templates that a model ships: of Qwen they render functions, Llama's does not know them.
SHIPPED = ["qwen2_5", "qwen3_instruct_2507", "llama3"]


def episode(system: str | None) -> list[dict[str, Any]]:
    prompt = EpisodePrompt("Craft.", None, (), "tools", system, observation_prefix="")
    messages = opening_messages(prompt, "Goal: craft oak planks.")
    for call, answer in zip(CALLS, ("Inventory: nothing", "Got 1 oak log"), strict=True):
        messages.append({"role": "assistant", "content": call})
        messages.append(observation_message("", answer, prompt.answered_by))
    return messages


@pytest.fixture(params=[*(chat.name for chat in FORMATS if not chat.by_line), *SHIPPED])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Encoder, ChatText]:
    """What a trainer and what a server make tokens with."""
    shipped = request.param in SHIPPED
    chat = format_named("chatml" if shipped else request.param)
    tokenizer: PreTrainedTokenizerFast = train_tokenizer(
        chat, corpus_texts(chat, [episode("Be brief.")]), 600, 1024
    )
    if shipped:
        tokenizer.chat_template = (TEMPLATES / f"{request.param}.jinja").read_text()
        if request.param == "llama3":
            headers = ("<|start_header_id|>", "<|end_header_id|>")
            tokenizer.add_special_tokens(
                {"eos_token": "<|eot_id|>", "additional_special_tokens": list(headers)}
            )
    name = "tokenizer" if shipped else chat.name
    (tmp_path / "agentc_chat.json").write_text(json.dumps({"chat_format": name}))
    return Encoder(tokenizer, name), ChatText(str(tmp_path), tokenizer)


@pytest.mark.parametrize("system", [None, "Be brief."])
def test_a_server_shows_what_is_trained(both: tuple[Encoder, ChatText], system: str | None) -> None:
    encoder, served = both
    messages = episode(system)
    for length in range(2, len(messages) + 1, 2):
        said, tools = request_of(messages[:length])
        prompt = served.encode(
            said, add_generation_prompt=True, continue_final_message=False, tools=tools
        )
        assert prompt == encoder.encode_prompt(messages[:length])
        assert prompt == served.encode_row(messages[:length])
        if length < len(messages):
            # Behind it stands the reply, so that no trained token follows another prompt.
            assert encoder.encode(messages).ids[: len(prompt)] == prompt
    shown = encoder.tokenizer.decode(encoder.encode(messages).ids)
    assert '"description": "The action."' in shown
    assert (system is not None) == ("Be brief." in shown)


def test_calls_and_their_ends_are_trained(both: tuple[Encoder, ChatText]) -> None:
    encoder, _ = both
    messages = episode("Be brief.")
    row = {"id": "one", "messages": messages, "prompt_length": 2}
    [side], counts = encode_rows(encoder, [row], RULES)
    trained = [i for i, t in zip(side.ids, side.trained, strict=True) if t]
    assert counts.trained_tokens == len(trained)
    ends = [s.text for s in encoder.segments(messages) if s.turn is not None and not s.content]
    text = encoder.tokenizer.decode(trained)
    for call in CALLS:
        assert text.count(call) == 1
        text = text.replace(call, "")
    assert text == "".join(ends)
    pair = {"id": "two", "prompt": messages[:2], "chosen": messages[2:5],
            "rejected": messages[2:3]}  # fmt: skip
    whole = MaskRules(loss_on="assistant", max_length=4096, truncation="error")
    [(chosen, rejected)], _ = encode_pairs(encoder, [pair], whole)
    assert [i for i, t in zip(chosen.ids, chosen.trained, strict=True) if t] == trained
    assert rejected.ids == chosen.ids[: len(rejected.ids)]


def test_a_notation_of_another_kind_is_refused() -> None:
    chat = format_named("chatml")
    tokenizer = train_tokenizer(chat, corpus_texts(chat, [episode(None)]), 600, 1024)
    tokenizer.chat_template = (TEMPLATES / "llama3_1.jinja").read_text()
    with pytest.raises(FormatError, match="a notation that"):
        Encoder(tokenizer, "tokenizer").encode(episode(None))


def test_results_without_declared_functions_are_written_like_others(
    both: tuple[Encoder, ChatText],
) -> None:
    """Published data may hold calls and results, and no functions."""
    encoder, _ = both
    messages = [message for message in episode(None) if message["role"] != "system"]
    text = "".join(segment.text for segment in encoder.segments(messages))
    assert "<tools>" not in text
    assert text.count("<tool_response>\nInventory: nothing\n</tool_response>") == 1
    (row,), _ = encode_rows(encoder, [{"id": "a", "messages": messages, "prompt_length": 1}], RULES)
    prompt = encoder.encode_prompt(messages[:-2])
    assert row.ids[: len(prompt)] == prompt
    assert not row.trained[len(prompt) - 1]
    assert row.trained[len(prompt)]
