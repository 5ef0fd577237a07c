"""Servers as processes for the tests of this folder, and a template that renders functions."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.support.patience import PATIENCE_S

TOOLS_TEMPLATE = """\
{%- if tools %}{{- '<|im_start|>system\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
{{- '\\n</tools><|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{%- else %}{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- (call.function.arguments | tojson) + '}\\n</tool_call>' }}{%- endfor %}{%- endif %}
{{- '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
"""A template of its own that writes calls as Hermes does."""


def tools_template(model: Path, context: int) -> None:
    """Let a tiny checkpoint render functions by its own template, and take longer texts."""
    (model / "chat_template.jinja").write_text(TOOLS_TEMPLATE)
    (model / "agentc_chat.json").write_text('{"chat_format": "tokenizer"}')
    for name, key in (
        ("config.json", "max_position_embeddings"),
        ("tokenizer_config.json", "model_max_length"),
    ):
        told = json.loads((model / name).read_text())
        (model / name).write_text(json.dumps({**told, key: context}))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: list[str], environment: dict[str, str], log: Path, url: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that answers; ended afterwards with all that it started."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=environment, stdout=out, stderr=out, cwd=log.parent,
            start_new_session=True,
        )  # fmt: skip
    try:
        await_health(url, process, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()


def await_health(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            if httpx2.get(url + "/health", timeout=5, trust_env=False).status_code == 200:
                return
        except httpx2.HTTPError:
            pass
        time.sleep(0.5)
    pytest.fail(f"the server did not start:\n{log.read_text()[-4000:]}")
