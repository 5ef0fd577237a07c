"""What a model that is shown pages is asked, as vLLM itself reads it: nothing of it is ignored, and
pictures and labels keep their order. Without weights, and without a server.

The CPU's build has no torchvision, and so no Qwen2-VL; another model that sees stands for it.
"""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.backends.colbench.frontend.conftest import TASK
from tests.support.patience import PATIENCE_S
from tests.support.vllm_software import tiny_model, vllm_python, vllm_variables

from agentc.runtime.browser.render import Rendered
from agentc_backends.environments.colbench.frontend.human import (
    MADE,
    NOTHING_MADE,
    PROMPT,
    WANTED,
    ModelPageHuman,
)
from agentc_backends.environments.server.model_services import ModelService

pytestmark = [pytest.mark.slow, pytest.mark.vllm]
SEES: dict[str, Any] = {
    "architectures": ["Idefics3ForConditionalGeneration"],
    "model_type": "idefics3",
    "image_token_id": 5,
    "text_config": {
        "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 2, "vocab_size": 1000, "max_position_embeddings": 512,
    },
    "vision_config": {
        "model_type": "idefics3_vision", "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "patch_size": 14,
    },
}  # fmt: skip
LOOPS = """\
{% for message in messages %}<{{ message['role'] }}>{% if message['content'] is string %}\
{{ message['content'] }}{% else %}{% for part in message['content'] %}{% if 'text' in part %}\
{{ part['text'] }}{% else %}<picture>{% endif %}{% endfor %}{% endif %}{% endfor %}"""
"""A chat template that goes through the parts of a message, as those of models that see do."""
READ = """
import json, sys
from agentc_backends.servers.vllm.job_serve import alias_distribution
alias_distribution()
from vllm.config import ModelConfig
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.renderers.chat_utils import parse_chat_messages
from vllm.renderers.hf import _detect_content_format
folder, template, bodies = json.load(sys.stdin)
model = ModelConfig(model=folder, tokenizer=folder, max_model_len=256, dtype="float32")
style = _detect_content_format(template, default="string")
for body in bodies:
    asked = ChatCompletionRequest.model_validate(body)
    told, found, _ = parse_chat_messages(asked.messages, model, content_format=style)
    pictures = [getattr(one, "media", one) for one in found["image"]]
    print(json.dumps({
        "style": style, "messages": told, "ignored": asked.model_extra,
        "settings": [asked.temperature, asked.max_tokens, asked.top_p, asked.seed],
        "pictures": [[*one.size, *one.convert("RGB").getpixel((0, 0))] for one in pictures],
    }))
"""


def picture(width: int, height: int, colour: tuple[int, int, int]) -> Rendered:
    stream = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(stream, "PNG")
    return Rendered("ok", {}, stream.getvalue(), height)


def test_vllm_reads_two_pictures_behind_their_labels(
    asked: list[dict[str, Any]], tmp_path: Path
) -> None:
    python = vllm_python()
    human = ModelPageHuman(ModelService(), temperature=0.5, max_tokens=64, most_pixels=1200)
    wanted, made = picture(20, 50, (0, 0, 255)), picture(80, 60, (255, 0, 0))
    human.reply(TASK, 1, wanted, made, again=False)
    human.reply(TASK, 0, wanted, None, again=False)
    folder = tmp_path / "model"
    tiny_model(python, folder)
    (folder / "config.json").write_text(json.dumps(SEES))
    done = subprocess.run(
        [python, "-c", READ], input=json.dumps([str(folder), LOOPS, asked]), text=True,
        env=vllm_variables(), capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    both, first = [json.loads(line) for line in done.stdout.splitlines() if line[:2] == '{"']

    def said(text: str) -> dict[str, str]:
        return {"type": "text", "text": text}

    assert both["messages"] == [
        {
            "role": "user",
            "content": [said(PROMPT), said(MADE), {"type": "image"}, said(WANTED),
                        {"type": "image"}],
        }
    ]  # fmt: skip
    # What was made comes first, at most 1200 pixels of it; each is what its label says.
    assert both["pictures"] == [[40, 30, 255, 0, 0], [20, 50, 0, 0, 255]]
    assert [part.get("text") for part in first["messages"][0]["content"]] == [
        PROMPT, NOTHING_MADE, WANTED, None,
    ]  # fmt: skip
    assert first["pictures"] == [[20, 50, 0, 0, 255]]
    for one, body in ((both, asked[0]), (first, asked[1])):
        # Where a template takes texts alone, vLLM puts all pictures before the first word.
        assert one["style"] == "openai"
        assert one["ignored"] in (None, {})
        assert one["settings"] == [0.5, 64, 1.0, body["seed"]]
