"""Lowering of model stages."""

from __future__ import annotations

from typing import Any

import pytest

from agentc.backend_api import JobDraft, StageBackend, StageView
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc_backends.data.models.backend import HF, PATH, SCRATCH


class Context:
    """Knows the content of one directory, and what one branch is pinned to."""

    def digest_of(self, path: str) -> str | None:
        return "d" * 64 if path == "models/here" else None

    def model_folder(self, path: str) -> tuple[str, str | None]:
        return path, self.digest_of(path)

    def pinned_revision(self, repo: str, revision: str) -> str | None:
        return {"main": "b" * 40}.get(revision, revision if len(revision) == 40 else None)

    def local_file(self, path: str) -> None:
        return None


def lower(
    backend: StageBackend, corpus: tuple[str, ...] = ("expert",), **settings: Json
) -> tuple[JobDraft, StageView]:
    kind = kind_named("model")
    assert kind is not None
    view = StageView(
        table=kind.fields,
        values=settings,
        kind="model",
        inputs={"corpus": corpus} if corpus else {},
    )
    context: Any = Context()
    (draft,) = backend.lower(view, context)
    return draft, view


def refused(backend: StageBackend, corpus: tuple[str, ...] = ("e",), **settings: Json) -> list[str]:
    return [refusal.path for refusal in lower(backend, corpus, **settings)[1].refusals]


def test_scratch_fills_in_what_follows_from_the_size() -> None:
    draft, view = lower(SCRATCH, hidden_size=128, heads=2)
    assert view.refusals == []
    config = draft.config
    assert (config["kv_heads"], config["intermediate_size"]) == (2, 256)
    assert config["chat_format"] == "chatml"
    assert draft.inputs == {"corpus": ("expert",)}


def test_scratch_refuses_what_it_cannot_make() -> None:
    assert refused(SCRATCH, ()) == ["corpus"]
    assert refused(SCRATCH, chat_format="tokenizer") == ["chat_format"]
    assert refused(SCRATCH, hidden_size=100, heads=3) == ["heads"]
    assert refused(SCRATCH, heads=4, kv_heads=3) == ["kv_heads"]


def test_scratch_leaves_fields_of_other_backends_unread() -> None:
    """What is set and not read is an error of the compiler, which names who would read it."""
    _, view = lower(SCRATCH, repo="a/b", path="x")
    assert not {"repo", "path", "revision", "trust_remote_code"} & view.read


def test_hf_needs_a_pinned_revision() -> None:
    assert refused(HF, ()) == ["repo", "revision"]
    draft, view = lower(HF, (), repo="a/b", revision="a" * 40, chat_format="llama-2")
    assert view.refusals == []
    assert draft.config == {"repo": "a/b", "revision": "a" * 40, "chat_format": "llama-2"}
    assert "seed" not in view.read
    # A commit is its own identity: keys from before locks stay as they are.
    assert draft.extra_identity == {}


def test_hf_takes_a_branch_that_a_lock_pins() -> None:
    draft, view = lower(HF, (), repo="a/b", revision="main", chat_format="llama-2")
    assert view.refusals == []
    assert draft.config["revision"] == "b" * 40
    assert draft.extra_identity == {"commit": "b" * 40}
    assert refused(HF, (), repo="a/b", revision="v2", chat_format="llama-2") == ["revision"]


def test_path_puts_the_content_into_the_key() -> None:
    draft, view = lower(PATH, (), path="models/here")
    assert view.refusals == []
    assert "d" * 64 in draft.extra_identity.values()
    assert refused(PATH, (), path="models/gone") == ["path"]
    assert refused(PATH, ()) == ["path"]


@pytest.mark.parametrize("backend", [HF, PATH])
def test_code_of_model_repositories_is_refused(backend: StageBackend) -> None:
    settings: dict[str, Json] = {"repo": "a/b", "revision": "a" * 40, "path": "models/here"}
    assert refused(backend, (), **settings, trust_remote_code=True) == ["trust_remote_code"]
