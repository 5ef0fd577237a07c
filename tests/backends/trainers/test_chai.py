"""`chai.online_rl` and a server with `rerank`, as far as the compiler goes: what has no effect or
cannot be is refused by name, and who ranks is in the keys of what it said."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentc.diagnostics
from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import Compilation, compile_spec
from agentc.cost import estimate_plan
from agentc.diagnostics import render_text
from agentc.plan.render import plan_document

SPEC = (Path(agentc.diagnostics.__file__).parent / "examples" / "AGC619" / "fixed.yaml").read_text()
SERVER = "{backend: transformers, rerank: {}}"
RUN = "    algorithm: chai\n"


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


def compiled(folder: Path, table: BackendTable, *changes: tuple[str, str]) -> Compilation:
    text = SPEC
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    spec = folder / "spec.yaml"
    spec.write_text(text)
    return compile_spec(spec, {}, table)


def key(folder: Path, table: BackendTable, server: str) -> str:
    found = compiled(folder, table, (SERVER, server))
    assert found.plan is not None, render_text(found.diagnostics)
    return next(job.key for job in found.plan.jobs if job.id == "evaluate:rollout")


def test_what_has_no_effect_or_cannot_be_is_refused(tmp_path: Path, table: BackendTable) -> None:
    for line, said in (
        ("actor: {updates: 3}", "`actor.updates` has no effect: CHAI trains no policy"),
        ("actor: {kl_penalty: 0.1}", "`actor.kl_penalty` has no effect"),
        ("warmup: 2", "`warmup` has no effect: no update of the policy comes behind it"),
        ("keep: [1]", "`keep` has no effect: the policy is the same after every iteration"),
        ("critic: {expectile: 0.8}", "`critic.expectile` has no effect"),
        ("decode: {temperature: 0}", "meets nothing new to learn from"),
        ("evaluate: {split: test, temperature: 0}", "at temperature 0 all candidates are the same"),
        ("options: {candidates: 1}", "a whole number of at least 2"),
    ):
        found = compiled(tmp_path, table, (RUN, f"{RUN}    {line}\n"))
        assert found.plan is None
        assert said in render_text(found.diagnostics), line


def test_what_it_is_told(tmp_path: Path, table: BackendTable) -> None:
    more = f"{RUN}    critic: {{hidden: 8}}\n    options: {{candidates: 3, rank_with: online}}\n"
    found = compiled(tmp_path, table, (RUN, more))
    assert found.plan is not None
    config = next(job for job in found.plan.jobs if job.id == "run").draft.config
    learner = config["learner"]
    assert isinstance(learner, dict)
    assert sorted(learner) == ["algorithm", "critic"]
    critic = learner["critic"]
    assert isinstance(critic, dict)
    assert (critic["candidates"], critic["rank_with"], critic["hidden"]) == (3, "online", 8)
    assert (config["warmup"], config["keep"]) == (0, [])


def test_candidates_take_their_time(tmp_path: Path, table: BackendTable) -> None:
    def seconds(count: int) -> float:
        more = f"{RUN}    options: {{candidates: {count}}}\n"
        plan = compiled(tmp_path, table, (RUN, more)).plan
        assert plan is not None
        return estimate_plan(plan_document(plan), None, table=table)["run"].seconds.median

    assert seconds(2) < seconds(5) < seconds(20)


def test_who_ranks_is_in_the_key(tmp_path: Path, table: BackendTable) -> None:
    servers = (
        "{backend: transformers}",
        SERVER,
        "{backend: transformers, rerank: {candidates: 4}}",
        "{backend: transformers, rerank: {critic: online}}",
    )
    keys = [key(tmp_path, table, server) for server in servers]
    assert len({*keys}) == len(keys)
    assert key(tmp_path, table, "{backend: transformers, rerank: null}") == keys[0]
    assert key(tmp_path, table, "{backend: transformers, rerank: {candidates: 5}}") == keys[1]


@pytest.mark.parametrize("backend", ["vllm", "scripted", "openai"])
def test_other_servers_refuse_it_by_name(backend: str, tmp_path: Path, table: BackendTable) -> None:
    found = compiled(tmp_path, table, (SERVER, SERVER.replace("transformers", backend)))
    text = render_text(found.diagnostics)
    assert f"unknown key `rerank` in server `best_of_five` (backend serve.{backend})" in text
    assert "`rerank` belongs to serve.transformers" in text
