"""What a spec may say of pages: what is refused and why, and what keys follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.backends.colbench.frontend.conftest import TASK

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec

TAILWIND = "https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css"
SPEC = """
agentc: 1
name: pages
environments: {{pages: {{backend: colbench_frontend, {entry}}}}}
{servers}
stages: {{hidden: {{kind: privileged, environment: pages, split: {split}}}}}
"""
MODEL = "human: model, simulator: {server: human}"
REMOTE = "servers: {human: {backend: openai, url: 'https://models.example/v1', model: sees}}"


def _compiled(folder: Path, entry: str, servers: str = "", split: str = "train") -> Any:
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.format(entry=entry, servers=servers, split=split))
    return compile_spec(spec, {}, load_backends())


def _messages(compiled: Any) -> str:
    return "\n".join(map(repr, compiled.diagnostics))


def _rows(folder: Path, reference: str, description: str = TASK.description) -> None:
    row = {"problem_description": description, "ground_truth": reference}
    (folder / "pages.jsonl").write_text(json.dumps(row) + "\n")


def test_the_cosine_is_refused_without_an_encoder(tmp_path: Path) -> None:
    found = _messages(_compiled(tmp_path, "similarity: clip"))
    assert "vision encoder" in found
    assert "`similarity: composite`" in found


def test_pages_that_link_tailwind_need_its_file(tmp_path: Path) -> None:
    _rows(tmp_path, f'<html><link href="{TAILWIND}"></html>')
    entry = "tasks: pages.jsonl, splits: {all: {file: pages.jsonl}}"
    found = _messages(_compiled(tmp_path, entry, split="all"))
    assert "link Tailwind 2.2.19" in found
    assert "`agentc data fetch tailwind`" in found
    (tmp_path / "tailwind.min.css").write_text("body {}")
    entry += ", stylesheet: tailwind.min.css"
    found = _messages(_compiled(tmp_path, entry, split="all"))
    assert "is not Tailwind 2.2.19's" in found


def test_a_human_who_is_a_model_has_to_see(tmp_path: Path) -> None:
    blind = "servers: {human: {backend: scripted, max_model_len: 4096, rules: [{reply: No.}]}}"
    assert "capability `vision`" in _messages(_compiled(tmp_path, MODEL, blind))
    assert _compiled(tmp_path, MODEL, REMOTE).plan is not None


def test_keys_follow_what_files_hold(tmp_path: Path) -> None:
    def key(entry: str, reference: str) -> str:
        _rows(tmp_path, reference)
        (tmp_path / "moved.jsonl").write_bytes((tmp_path / "pages.jsonl").read_bytes())
        compiled = _compiled(tmp_path, entry, split="all")
        assert compiled.plan is not None, _messages(compiled)
        return str(compiled.plan.jobs[0].key)

    here = "tasks: pages.jsonl, splits: {all: {file: pages.jsonl}}"
    there = "tasks: moved.jsonl, splits: {all: {file: moved.jsonl}}"
    one = key(here, TASK.reference)
    assert key(there, TASK.reference) == one
    assert key(here, TASK.reference + " ") != one
    assert key(f"{here}, browsers: 2", TASK.reference) == one
    assert key(f"{here}, success_at: 0.5", TASK.reference) != one


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
def test_a_prompt_of_the_spec_has_words(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "words.txt").write_bytes(content)
    found = _messages(_compiled(tmp_path, f"{MODEL}, human_prompt: words.txt", REMOTE))
    assert "words.txt" in found
