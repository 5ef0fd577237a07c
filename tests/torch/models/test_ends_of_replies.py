"""A model that is taken into a run stops where its chat format ends a reply, whatever end token it
was made with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from tests.torch.trl.jobs import small_model
from transformers import AutoTokenizer

from agentc_backends.data.chat.tokens import ends_of_model
from agentc_backends.data.models.checkpoint import CheckpointError, set_chat_format


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows ChatML's tokens and stops at another one, as base models do."""
    folder = small_model(tmp_path_factory.mktemp("base"))
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    tokenizer.eos_token = "<|endoftext|>"
    tokenizer.save_pretrained(str(folder))
    path = folder / "generation_config.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, "eos_token_id": tokenizer.eos_token_id}))
    return folder


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NEXT_TURN = CHATML.replace("<|im_end|>\n", "")
NO_END = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


@pytest.mark.parametrize(
    ("chat_format", "template", "end"),
    [
        ("chatml", None, "<|im_end|>"),
        ("tokenizer", CHATML, "<|im_end|>"),
        ("tokenizer", NEXT_TURN, "<|im_start|>"),
        ("tokenizer", CHATML.replace("<|im_end|>", "<|endoftext|>"), None),
    ],
)
def test_the_end_of_the_format_is_an_end_of_the_model(
    chat_format: str, template: str | None, end: str | None, base: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(base, folder)
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    before = (folder / "generation_config.json").read_bytes()
    set_chat_format(folder, chat_format)
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    ends = ["<|endoftext|>"] if end is None else ["<|endoftext|>", end]
    assert tokenizer.convert_ids_to_tokens(ends_of_model(folder, tokenizer)) == ends
    assert ((folder / "generation_config.json").read_bytes() == before) == (end is None)


def test_a_template_that_ends_no_reply_is_refused(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(base, folder)
    (folder / "chat_template.jinja").write_text(NO_END)
    with pytest.raises(CheckpointError, match="ends no reply"):
        set_chat_format(folder, "tokenizer")
