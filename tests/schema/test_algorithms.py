"""`algorithm` of the kinds of RL: it chooses among the backends that implement it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.backend_api.declare import StageBackend
from agentc.compilation import compile_spec
from agentc.published.json_schema import language_schema

SPEC = """agentc: 1
name: demo
models:
  base: {backend: scratch, chat_format: chatml, corpus: expert, hidden_size: 32, heads: 2,
         context: 256}
environments: {corridor: {backend: corridor}}
prompts: {way: {instruction: Find the way out., reply_format: text}}
defaults: {environment: corridor, prompt: way, split: train}
stages:
  expert: {kind: expert}
  run: {kind: online_rl, model: base, iterations: 2, episodes: 8SETTINGS}
"""


@pytest.fixture(scope="module")
def installed() -> BackendTable:
    """Every installed backend."""
    return load_backends()


def compiled(
    settings: str, table: BackendTable, folder: Path
) -> tuple[list[str], tuple[str, str] | None]:
    """What is reported of a run with these settings, and its backend with its algorithm."""
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.replace("SETTINGS", f", {settings}" if settings else ""))
    found = compile_spec(spec, {}, table)
    reported = [f"{d.severity} {d.code}: {d.message} | {d.expected}" for d in found.diagnostics]
    if found.plan is None or found.module is None:
        return reported, None
    learner = found.plan.by_id()["run"].draft.config["learner"]
    assert isinstance(learner, dict)
    return reported, (found.module.stages["run"].backend, str(learner["algorithm"]))


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ("", ("archer.online_rl", "archer")),
        ("algorithm: ppo", ("ppo.online_rl", "ppo")),
        (
            "algorithm: filtered_bc, options: {keep_share: 0.5}",
            ("filtered_bc.online_rl", "filtered_bc"),
        ),
        ("algorithm: rloo", ("trl.online_rl", "rloo")),
        ("algorithm: grpo, backend: trl", ("trl.online_rl", "grpo")),
    ],
)
def test_an_algorithm_chooses_its_backend(
    settings: str, chosen: tuple[str, str], installed: BackendTable, tmp_path: Path
) -> None:
    assert compiled(settings, installed, tmp_path) == ([], chosen)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "algorithm: gpro",
            "error AGC204: `algorithm` of stage `run` cannot be `gpro` | one of `grpo`, `ppo`, "
            "`archer`, `chai`, `filtered_bc`, `rloo`",
        ),
        (
            "algorithm: ppo, backend: trl",
            "error AGC601: `trl.online_rl` does not implement `algorithm: ppo` | "
            "one of `ppo.online_rl`",
        ),
        ("backend: trl", "error AGC202: stage `run` needs `algorithm` | one of `grpo`, `rloo`"),
        (
            "backend: ppo",
            "note AGC215: `ppo` is an algorithm, and `backend` is its implementation | None",
        ),
    ],
)
def test_what_nothing_implements_is_reported(
    settings: str, message: str, installed: BackendTable, tmp_path: Path
) -> None:
    assert compiled(settings, installed, tmp_path)[0] == [message]


def test_a_backend_chooses_between_two_implementations(
    installed: BackendTable, tmp_path: Path
) -> None:
    ours = installed.backends["ppo.online_rl"]
    assert isinstance(ours, StageBackend)
    other = replace(ours, id="swift.online_rl", algorithms=("ppo", "reinforce_pp"))
    both = BackendTable({each.id: each for each in (*installed, other)})
    for name in ("ppo", "swift"):
        found = compiled(f"algorithm: ppo, backend: {name}", both, tmp_path)
        assert found == ([], (f"{name}.online_rl", "ppo"))
    assert compiled("algorithm: ppo", both, tmp_path)[0] == []
    schema = language_schema(both)["$defs"]
    assert isinstance(schema, dict)
    run = schema["stage_online_rl"]["properties"]["algorithm"]  # type: ignore[call-overload,index]
    assert "reinforce_pp" in run["anyOf"][0]["enum"]  # type: ignore[call-overload,index]
