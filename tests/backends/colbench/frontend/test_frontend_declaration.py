"""What a spec may say of pages: what is refused and why, and what keys follow."""

from __future__ import annotations

import json
from functools import partial
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
CLAIMED = """
agentc: 1
name: pages
environments:
  pages: {{backend: colbench_frontend, {entry}}}
servers:
  player: {{backend: scripted, max_model_len: 4096}}
  sees: {{backend: encoder}}
  {servers}
models:
  base: {{backend: hf, repo: owner/base-7b, revision: 0123456789abcdef0123456789abcdef01234567}}
prompts:
  make: {{instruction: Make a page., reply_format: text}}
stages:
  clip: {{kind: encoder, backend: scratch{second}}}
  tried: {{kind: evaluate, model: base, server: player, environment: pages, split: test}}
claims:
  one: {{what: A claim., stage: tried, {claim}}}
"""
OTHER = """\
  other: {kind: evaluate, model: base, server: player, environment: alone, split: test}
claims:"""
ALONE = "  alone: {backend: colbench_frontend, SECOND}\nservers:"
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


def _with_claim(folder: Path, entry: str, claim: str, servers: str = "", second: str = "") -> Any:
    """An evaluation on pages, of a model that is given a scorer, with a claim."""
    text = CLAIMED.format(entry=entry, claim=claim, servers=servers, second=second)
    (folder / "spec.yaml").write_text(text)
    return compile_spec(folder / "spec.yaml", {}, load_backends())


def test_the_cosine_needs_an_encoder(tmp_path: Path) -> None:
    """Named by the environment, served by a server that makes features, made by an encoder."""
    spec = partial(_with_claim, tmp_path, claim="metric: cosine, value: 0.5, n: 100")
    found = _messages(spec("similarity: clip"))
    assert "it calls a model server as `scorer`" in found
    found = _messages(spec("similarity: clip, scorer: {server: player, model: clip}"))
    assert "capability `image_embeddings`" in found
    found = _messages(spec("similarity: clip, scorer: {server: sees, model: base}"))
    assert "`scorer` of a stage of kind evaluate takes VisionEncoder" in found
    found = _messages(spec("scorer: {server: sees, model: clip}"))
    assert "scorer" in found
    assert spec("similarity: clip, scorer: {server: sees, model: clip}").plan is not None
    policy = _compiled(tmp_path, "", split="test")
    assert policy.plan is not None, _messages(policy)


def test_an_encoder_is_no_policy(tmp_path: Path) -> None:
    text = CLAIMED.format(entry="", claim="value: 0.5, n: 100", servers="", second="")
    (tmp_path / "spec.yaml").write_text(text.replace("model: base", "model: clip"))
    found = compile_spec(tmp_path / "spec.yaml", {}, load_backends())
    assert {"AGC501"} <= {each.code for each in found.diagnostics}
    assert "`scorer`" in _messages(found)


def test_leases_of_pages_that_are_scored(tmp_path: Path) -> None:
    entry = "similarity: clip, scorer: {server: sees, model: clip}"
    plan = _with_claim(tmp_path, entry, "metric: cosine, value: 0.5, n: 100").plan
    assert plan is not None
    job = plan.by_id()["tried:rollout"]
    leases = {lease.draft.role: lease.draft for lease in job.leases}
    assert set(leases) == {"policy", "environment", "scorer"}
    assert leases["environment"].needs == ("scorer",)
    assert (leases["scorer"].input, leases["scorer"].identity_check) == ("scorer", "features")
    assert job.inputs["scorer"] == ("clip",)
    measured = plan.by_id()["tried"].draft.config
    assert measured["reward_name"] == "cosine"

    claim = "metric: cosine, value: 0.5, n: 100"
    other = _with_claim(tmp_path, entry, claim, second=", seed: 1").plan
    assert other is not None
    keys = [each.by_id()["tried:rollout"].key for each in (plan, other)]
    assert keys[0] != keys[1], "another encoder is another reward"


def test_a_claim_names_the_reward_as_its_environment_does(tmp_path: Path) -> None:
    leased = "similarity: clip, scorer: {server: sees, model: clip}"
    for entry, claim, refused in (
        ("", "metric: cosine, value: 0.5, n: 100", True),
        ("", "metric: composite, value: 0.5, n: 100", False),
        (leased, "metric: composite, value: 0.5, n: 100", True),
        (leased, "metric: cosine, value: 0.5, n: 100", False),
        (leased, "metric: reward, value: 0.5, n: 100", False),
    ):
        found = _with_claim(tmp_path, entry, claim)
        codes = {each.code for each in found.diagnostics if each.severity == "error"}
        assert codes == ({"AGC447"} if refused else set()), (entry, claim, _messages(found))
    (error,) = _with_claim(tmp_path, "", "metric: cosine, value: 0.5, n: 100").diagnostics
    assert (
        error.message == "`tried` does not measure `cosine`: the reward of `pages` is `composite`"
    )
    assert error.fix is not None
    assert "write `similarity: clip, scorer: {server: NAME, model: NAME}`" in error.fix


def test_claims_pair_entries_that_have_the_same_tasks(tmp_path: Path) -> None:
    """A single turn and ten are two entries; one with other tasks cannot be paired."""
    claim = "metric: win_rate, difference_from: other, value: 0.5, n: 100"
    for second, refused in (("rounds: 1", False), ("rounds: 1, invented_seed: 3", True)):
        text = CLAIMED.format(entry="", claim=claim, servers="", second="")
        text = text.replace("claims:", OTHER).replace("servers:", ALONE.replace("SECOND", second))
        (tmp_path / "spec.yaml").write_text(text)
        found = compile_spec(tmp_path / "spec.yaml", {}, load_backends())
        codes = {each.code for each in found.diagnostics if each.severity == "error"}
        assert codes == ({"AGC444"} if refused else set()), _messages(found)


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
