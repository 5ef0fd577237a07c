"""Literals that look like credentials are refused and not shown; ordinary text is left alone."""

from __future__ import annotations

import base64
import json
import random
import string
import time
from pathlib import Path

import pytest

from agentc.backend_api import BackendTable
from agentc.diagnostics import Sink, render_json, render_text
from agentc.diagnostics.diagnostic import split_lines
from agentc.front.read_module import build_module
from agentc.source.load import load_bytes
from agentc.source.text_checks import blanked, find_credentials

GENERATOR = random.Random(7)
MIXED = string.ascii_letters + string.digits


def random_text(length: int, alphabet: str = MIXED) -> str:
    """A made-up key with every class of character."""
    body = "".join(GENERATOR.choice(alphabet) for _ in range(length - 3))
    return body[:4] + ("aZ7" if alphabet == MIXED else "7A3"[:3]) + body[4:]


def token_of_json() -> str:
    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return ".".join([part({"alg": "HS256"}), part({"sub": "1234567890"}), random_text(43)])


def private_key(kind: str) -> str:
    body = "\n".join(random_text(64) for _ in range(4))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


# Put together here, so that no scanner of repositories mistakes this file for a leak.
CREDENTIALS = {
    "hugging face": ("", "hf" + "_" + random_text(34, string.ascii_letters + string.digits)),
    "openai": ("", "sk" + "-proj-" + random_text(48)),
    "anthropic": ("", "sk" + "-ant-api03-" + random_text(90)),
    "github": ("", "ghp" + "_" + random_text(36)),
    "github, fine-grained": ("", "github" + "_pat_" + random_text(22) + "_" + random_text(59)),
    "gitlab": ("", "glpat" + "-" + random_text(20)),
    "aws": ("", "AKIA" + random_text(16, string.ascii_uppercase + string.digits)),
    "google": ("", "AIza" + random_text(35)),
    "slack": ("", "xoxb" + "-123456789012-" + random_text(24)),
    "pypi": ("", "pypi" + "-" + random_text(90)),
    "web token": ("", token_of_json()),
    "wandb, by its name": ("api_key: ", random_text(40, "0123456789abcdef")),
    "unknown form, by its name": ("password: ", random_text(24)),
    "in an address": ("", "https://me:" + random_text(12) + "@example.org/v1"),
    "in a comment": ("# token=", random_text(32, "0123456789abcdef")),
}


@pytest.mark.parametrize(("prefix", "value"), CREDENTIALS.values(), ids=list(CREDENTIALS))
def test_refused_at_its_place_and_not_shown(
    prefix: str, value: str, small_table: BackendTable
) -> None:
    if prefix.startswith("#"):
        text = f"agentc: 1\nname: demo\n{prefix}{value}\n"
    else:
        text = (
            f"agentc: 1\nname: demo\nservers:\n  s: {{backend: vllm, {prefix or 'a: '}{value}}}\n"
        )
    sink = Sink()
    source, root = load_bytes(text.encode(), "spec.yaml", sink)
    build_module(source, root, {}, small_table, sink)
    found = [each for each in sink.sorted() if each.code == "AGC120"]
    assert len(found) == 1
    span = found[0].span
    assert span is not None
    line = split_lines(text)[span.line - 1]
    refused = line[span.column - 1 : span.end_column - 1]
    assert refused in value
    assert len(refused) >= 12
    shown = render_text(sink.sorted()) + render_json(sink.sorted()) + source.text
    assert refused not in shown


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY"])
def test_a_private_key_is_blanked_out_to_its_end(kind: str) -> None:
    key = private_key(kind)
    text = "description: |\n  " + key.replace("\n", "\n  ") + "\nname: demo\n"
    sink = Sink()
    source, root = load_bytes(text.encode(), "spec.yaml", sink)
    assert [each.code for each in sink.sorted()] == ["AGC120"]
    assert root is not None
    assert not any(line.strip() in source.text for line in key.splitlines()[1:-1])
    assert "name: demo" in source.text


@pytest.mark.parametrize(
    "text",
    [
        "revision: 0123456789abcdef0123456789abcdef01234567",
        "sha256: " + "0123456789abcdef" * 4,
        "tokenizer: meta-llama/Llama-2-7b-chat-hf",
        "stop_token: <|im_end|>",
        "token: hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "repo: scikit-learn/sk-learn-pipelines-for-agents-and-tools-v2",
        "api_key: {secret: MY_VERY_LONG_OPENAI_API_KEY_2}",
        "key: Llama-2-7b-chat-hf-instruct-V2-2024-Long-Name",
        "url: http://127.0.0.1:8000/v1",
        "url: https://github.com/user/repo@main",
        "monkey: Th1sIsAHouse",
        "max_tokens: 1024",
        "secret: WANDB_API_KEY",
    ],
)
def test_ordinary_settings_are_not_mistaken(text: str) -> None:
    assert find_credentials(text) == ()


def test_nothing_in_the_repository_is_mistaken(repository: Path) -> None:
    """Specs, templates, prompts, locks and documentation: no false alarm."""
    searched = 0
    for folder in ("specs", "templates", "docs", "backends", "compiler"):
        for path in (repository / folder).rglob("*"):
            if path.suffix not in (".yaml", ".md", ".json", ".lock", ".j2", ".txt"):
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            example = "5up3rS3cretV4lueW1thN0Meaning"  # of AGC120 itself
            found = [each for each in find_credentials(text) if example not in text]
            assert found == [], path
            searched += 1
    assert searched > 30


@pytest.mark.parametrize(
    "text",
    [
        "eyJ" * 170_000,
        "eyJaaaaaaaaaaa." * 34_000,
        "sk-" * 170_000,
        "hf_" * 170_000,
        "://a:" * 100_000,
        "://a:b" * 85_000,
        "key:" * 128_000,
        "key: " + "aZ7" * 170_000,
        "-----BEGIN PRIVATE KEY-----" * 19_000,
        "-----BEGIN " * 46_000,
    ],
    ids=lambda text: text[:12],
)
def test_the_search_takes_time_in_proportion(text: str) -> None:
    began = time.process_time()
    find_credentials(text)
    assert time.process_time() - began < 5


def test_blanking_keeps_places() -> None:
    text = "a: " + CREDENTIALS["openai"][1] + "\nb: é" + CREDENTIALS["aws"][1]
    assert [len(line) for line in blanked(text, find_credentials(text)).split("\n")] == [
        len(line) for line in text.split("\n")
    ]
