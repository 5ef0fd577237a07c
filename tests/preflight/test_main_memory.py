"""What models take of main memory, told once for those of which the same is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.placement import settle_plan
from agentc.plan.render import plan_document
from agentc.preflight import memory
from agentc.preflight.memory import check_memory

SPEC = Path(__file__).parents[2] / "specs" / "agent_r" / "textcraft.yaml"


def test_equal_trainings_are_told_of_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three iterations, each with the same model, on a machine of 24 GB."""
    monkeypatch.setattr(memory, "memory_limit", lambda variables: (24_000.0, "this machine"))
    plan = compile_spec(SPEC, {}, load_backends()).plan
    assert plan is not None
    settled = settle_plan(plan_document(plan), None)
    found = [each for each in check_memory(settled, here=True) if each.check == "memory"]
    assert [each.about for each in found] == [tuple(f"agent_r.{n}.sft" for n in (1, 2, 3))]
    message = found[0].message
    assert message.startswith("24000 MiB here (this machine), and the model of agent_r.1.sft takes")
    assert message.endswith(" MiB")
    # Eight processes that each load eight billion float32 weights: 257 GB.
    assert int(message.split()[-2]) == pytest.approx(8 * 8.03e9 * 4 / 2**20, rel=0.05)
