"""What models take of main memory, told once for those of which the same is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.placement import resolve_placement
from agentc.plan.render import plan_document
from agentc.preflight import requests
from agentc.preflight.requests import check_memory

SPEC = Path(__file__).parents[2] / "specs" / "agent_r" / "textcraft.yaml"


def test_equal_trainings_are_told_of_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three iterations, each with the same model, on a machine of 24 GB."""
    monkeypatch.setattr(requests, "memory_limit", lambda variables: (24_000.0, "this machine"))
    plan = compile_spec(SPEC, {}, load_backends()).plan
    assert plan is not None
    settled = resolve_placement(plan_document(plan), None)
    found = [each for each in check_memory(settled, here=True) if each.check == "memory"]
    assert [each.about for each in found] == [tuple(f"agent_r.{n}.sft" for n in (1, 2, 3))]
    message = found[0].message
    assert message.startswith("24000 MiB here (this machine), and the model of agent_r.1.sft takes")
    assert message.endswith(" MiB")
    # Eight processes that each load eight billion float32 weights: 257 GB.
    assert int(message.split()[-2]) == pytest.approx(8 * 8.03e9 * 4 / 2**20, rel=0.05)


SERVED = """\
agentc: 1
name: demo
environments:
  craft: {backend: textcraft, max_expert_steps: 4}
models:
  tiny: {backend: scratch, corpus: expert, chat_format: chatml}
servers:
  local: {backend: vllm, cpu_kv_cache_gb: GIB}
prompts:
  react: {instruction: Craft the goal.}
stages:
  expert: {kind: expert, split: train, limit: 4}
  score: {kind: evaluate, model: tiny, split: test, decode: {max_tokens: 16}}
"""


@pytest.mark.parametrize(("gib", "refused"), [(64, True), (8, False)])
def test_keys_and_values_beyond_the_machine_are_a_problem(
    gib: int, refused: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """vLLM takes them whole at its start: 64 GiB on 24 are no matter of an estimate."""
    monkeypatch.setattr(requests, "memory_limit", lambda variables: (24_000.0, "this machine"))
    path = tmp_path / "spec.yaml"
    path.write_text(SERVED.replace("GIB", str(gib)))
    plan = compile_spec(path, {}, load_backends()).plan
    assert plan is not None
    settled = resolve_placement(plan_document(plan), None)
    found = [each for each in check_memory(settled, here=True) if each.check == "memory"]
    assert [each.verdict for each in found] == ["problem"] * refused
    if refused:
        assert "take 65536 MiB" in found[0].message
        assert "cpu_kv_cache_gb" in str(found[0].fix)
    # Jobs that go to a queue have another machine's memory.
    assert not any(each.check == "memory" for each in check_memory(settled, here=False))
