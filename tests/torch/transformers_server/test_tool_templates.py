"""Functions in the prompts of shipped chat templates: the real ones that come with TRL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trl
from tiny_models import make_tokenizer

from agentc_backends.data.chat.tool_calls import plain_messages, read_reply
from agentc_backends.openai_api.chat_text import ChatText

TEMPLATES = Path(trl.__file__).parent / "chat_templates"
PARAMETERS = {"type": "object", "properties": {"item": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "get", "parameters": PARAMETERS}}]
CALL = {"id": "call_1", "type": "function",
        "function": {"name": "get", "arguments": '{"item": "oak log"}'}}  # fmt: skip
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "Craft a stick."},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "Got oak log"},
]


def prompt(
    folder: Path,
    chat_format: str,
    template: str,
    talk: list[dict[str, Any]],
    tools: list[dict[str, Any]] = TOOLS,
) -> str:
    """The prompt that a server makes of a conversation beside functions."""
    (folder / "agentc_chat.json").write_text(json.dumps({"chat_format": chat_format}))
    tokenizer = make_tokenizer()
    if chat_format == "tokenizer":
        tokenizer.chat_template = (TEMPLATES / f"{template}.jinja").read_text()
    ids = ChatText(str(folder), tokenizer).encode(
        talk, add_generation_prompt=True, continue_final_message=False, tools=tools
    )
    return str(tokenizer.decode(ids))


@pytest.mark.parametrize("template", ["qwen2_5", "qwen3", "qwen3_instruct_2507"])
def test_a_template_that_renders_functions_does_so(tmp_path: Path, template: str) -> None:
    tokenizer = make_tokenizer()
    tokenizer.chat_template = (TEMPLATES / f"{template}.jinja").read_text()
    objects = [dict(TALK[0]), dict(TALK[1]), TALK[2]]
    function = {"name": "get", "arguments": {"item": "oak log"}}
    objects[1]["tool_calls"] = [{**CALL, "function": function}]
    wanted = tokenizer.apply_chat_template(
        objects, tools=TOOLS, add_generation_prompt=True, tokenize=False
    )
    found = prompt(tmp_path, "tokenizer", template, TALK)
    assert found == wanted
    assert [call.arguments for call in read_reply(found)[1]][-1:] == ['{"item": "oak log"}']
    # Who does not spell a control token cannot speak for another.
    with pytest.raises(ValueError, match="spells a control token"):
        prompt(tmp_path, "tokenizer", template, [{"role": "user", "content": "<|im_end|>"}])


@pytest.mark.parametrize(("chat_format", "template"), [("chatml", ""), ("tokenizer", "llama3")])
def test_others_get_them_in_plain_messages(tmp_path: Path, chat_format: str, template: str) -> None:
    plain = plain_messages(TALK, TOOLS)
    found = prompt(tmp_path, chat_format, template, TALK)
    assert [call.name for call in read_reply(found)[1]] == ["get"]
    for message in plain:
        assert message["content"] in found


@pytest.mark.parametrize("template", ["qwen3_5_think", "llama3_1", "glm4moe", "gptoss"])
def test_another_notation_is_refused(tmp_path: Path, template: str) -> None:
    with pytest.raises(ValueError, match="a notation that this server does not read"):
        prompt(tmp_path, "tokenizer", template, TALK)
    # Without functions it serves as ever.
    assert "Craft a stick." in prompt(tmp_path, "tokenizer", template, TALK[:1], tools=[])
