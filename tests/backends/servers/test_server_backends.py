"""Lowering of server entries, beside what the conformance kit holds of every setting."""

from __future__ import annotations

from typing import Any

import pytest

from agentc.backend_api import LeaseDraft, OptionView, ServerBackend
from agentc_backends.servers.remote.backend import BACKEND as OPENAI
from agentc_backends.servers.scripted.backend import BACKEND as SCRIPTED
from agentc_backends.servers.transformers.backend import BACKEND as TRANSFORMERS
from agentc_backends.servers.vllm.backend import BACKEND as VLLM

BACKENDS = (OPENAI, SCRIPTED, TRANSFORMERS, VLLM)
REQUIRED: dict[str, dict[str, Any]] = {
    "serve.openai": {"url": "https://example.org/v1", "model": "big"},
}


def lease(backend: ServerBackend, **values: Any) -> tuple[LeaseDraft, OptionView]:
    view = OptionView(table=backend.fields, values={**REQUIRED.get(backend.id, {}), **values})
    return backend.lease(view), view


@pytest.mark.parametrize("backend", [TRANSFORMERS, VLLM], ids=lambda b: b.id)
def test_code_of_a_checkpoint_is_refused_as_for_models(backend: ServerBackend) -> None:
    draft, view = lease(backend, trust_remote_code=True)
    assert [refusal.path for refusal in view.refusals] == ["trust_remote_code"]
    assert "--trust-remote-code" not in draft.program
    assert not lease(backend)[1].refusals


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b.id)
def test_defaults_do_not_enter_the_key(backend: ServerBackend) -> None:
    draft, _ = lease(backend)
    assert set(draft.identity) == set(REQUIRED.get(backend.id, {}))


def test_a_remote_endpoint_starts_nothing_and_holds_no_key() -> None:
    draft, view = lease(OPENAI, api_key={"secret": "MY_KEY"}, requests_per_minute=30.0)
    assert draft.port == "none"
    assert draft.program == ()
    assert draft.software is None
    assert dict(draft.secrets) == {"AGENTC_REMOTE_TOKEN": "MY_KEY"}
    assert draft.client["requests_per_minute"] == 30.0
    assert not view.refusals


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("http://example.org/v1", True),
        ("https://example.org/v1", False),
        ("http://127.0.0.1:8000/v1", False),
        ("http://127.0.0.1.example.org/v1", True),
    ],
)
def test_keys_are_not_sent_in_the_clear(url: str, refused: bool) -> None:
    _, view = lease(OPENAI, url=url, api_key={"secret": "MY_KEY"})
    assert [r.path for r in view.refusals] == (["url"] if refused else [])


def test_rules_survive_the_filling_of_placeholders() -> None:
    draft, _ = lease(SCRIPTED, rules=[{"reply": "serve {model} at {port}"}])
    word = draft.program[draft.program.index("--rules") + 1]
    assert "{model}" not in word
    assert __import__("json").loads(word) == [{"reply": "serve {model} at {port}"}]


def test_a_bad_pattern_is_refused_when_compiling() -> None:
    _, view = lease(SCRIPTED, rules=[{"reply": "x", "match": "(unclosed"}])
    assert [r.path for r in view.refusals] == ["rules.0"]


def test_chunked_prefill_is_vllms_choice_on_gpus_and_off_on_a_cpu() -> None:
    """Off for a bug of the CPU build; vLLM does not support turning it off on GPUs."""

    def program(**room: Any) -> str:
        return " ".join(VLLM.lease(OptionView(table=VLLM.fields, values={}, **room)).program)

    assert "--no-enable-chunked-prefill" in program()
    for room in ({"on_gpu": True}, {"on_gpu": True, "nodes": 2, "gpus": 8}):
        assert "chunked-prefill" not in program(**room)
    said = OptionView(table=VLLM.fields, values={"enable_chunked_prefill": False}, on_gpu=True)
    assert "--no-enable-chunked-prefill" in VLLM.lease(said).program


@pytest.mark.parametrize(
    ("batch", "replies", "refused"),
    [(64, 65, True), (64, 64, False), (None, 65, False), (64, None, False)],
)
def test_vllm_needs_a_token_of_each_pass_for_each_reply(
    batch: int | None, replies: int | None, refused: bool
) -> None:
    _, view = lease(VLLM, max_num_batched_tokens=batch, max_num_seqs=replies)
    assert [r.path for r in view.refusals] == (["max_num_batched_tokens"] if refused else [])
