"""The rule of `until:` as a function of measures, and what may run before it is decided."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import compile_spec
from agentc.ir.search import StoppingRule
from agentc.searching.stopping import RoundsProgress, step_before, stop_of

REACHES = StoppingRule(metric="success", reaches=0.8)
PATIENCE = StoppingRule(metric="success", no_gain_for=2)


@pytest.mark.parametrize(
    ("rule", "values", "after"),
    [
        (REACHES, [], None),
        (REACHES, [0.5, 0.79], None),
        (REACHES, [0.5, 0.8, 0.9], 2),
        (REACHES, [0.9], 1),
        (REACHES, [None, 0.9], 2),
        (replace(REACHES, direction="minimize", reaches=0.2), [0.5, 0.3], None),
        (replace(REACHES, direction="minimize", reaches=0.2), [0.5, 0.2, 0.1], 2),
        (PATIENCE, [0.5, 0.5], None),
        (PATIENCE, [0.5, 0.5, 0.5], 3),
        (PATIENCE, [0.5, 0.4, 0.6, 0.6, 0.1], 5),
        (PATIENCE, [0.5, 0.4, 0.6, 0.6, 0.7], None),
        # A round without a score is neither a gain nor one without.
        (PATIENCE, [0.5, None, 0.5, None], None),
        (PATIENCE, [None, None, None], None),
        # Small steps add up: it is the best round that a gain is over, not the one before.
        (replace(PATIENCE, min_gain=0.1), [0.5, 0.58, 0.66], None),
        (replace(PATIENCE, min_gain=0.1), [0.5, 0.55, 0.6], 3),
        (replace(PATIENCE, direction="minimize"), [0.5, 0.4, 0.45, 0.4], 4),
        # Of both, the one that holds first.
        (replace(PATIENCE, reaches=0.8), [0.5, 0.4, 0.3, 0.9], 3),
        (replace(PATIENCE, reaches=0.8), [0.5, 0.9, 0.3, 0.3], 2),
    ],
)
def test_where_the_rule_holds_first(
    rule: StoppingRule, values: list[float | None], after: int | None
) -> None:
    found = stop_of(rule, values)
    assert (None if found is None else found.after) == after
    if found is not None:
        # What is measured later changes nothing.
        assert stop_of(rule, values[: found.after]) == found
        assert stop_of(rule, [*values, 1.0, 0.0]) == found


@pytest.mark.parametrize(
    ("rule", "values", "sentence"),
    [
        (REACHES, (), "eto: up to 5 rounds, until success reaches 0.8"),
        (
            REACHES,
            (0.61,),
            "eto: up to 5 rounds, until success reaches 0.8; after round 1: success 0.61",
        ),
        (
            replace(PATIENCE, min_gain=0.05, reaches=0.9),
            (None,),
            "eto: up to 5 rounds, until success reaches 0.9 or has no gain of more than 0.05 for "
            "2 rounds; after round 1: no task has a score",
        ),
        (
            REACHES,
            (0.5, 0.81),
            "eto: up to 5 rounds; stopped after 2: success 0.81 reached 0.8",
        ),
        (
            PATIENCE,
            (0.5, 0.6, 0.4, 0.6),
            "eto: up to 5 rounds; stopped after 4: no gain for 2 rounds over success 0.6 of "
            "round 2",
        ),
        (REACHES, (0.1,) * 5, "eto: all 5 rounds; success 0.1, which did not reach 0.8"),
        (
            PATIENCE,
            (0.1, 0.2, 0.3, 0.4, 0.5),
            "eto: all 5 rounds; success 0.5, and the rule did not hold",
        ),
        (
            REACHES,
            (0.1, 0.1, 0.1, 0.1, 0.8),
            "eto: all 5 rounds; success 0.8 reached 0.8 in the last",
        ),
    ],
)
def test_what_people_are_told(
    rule: StoppingRule, values: tuple[float | None, ...], sentence: str
) -> None:
    assert so_far(rule, values).sentence() == sentence


def so_far(
    rule: StoppingRule, values: tuple[float | None, ...], planned: int = 5
) -> RoundsProgress:
    return RoundsProgress(name="eto", rule=rule, most=5, planned=planned, values=values)


SPEC = """\
agentc: 1
name: steps
models:
  base:
    backend: hf
    repo: meta-llama/Llama-2-7b-chat-hf
    revision: f5db02db724555f92da89c216ac04704f23d4590
environments: {craft: {backend: textcraft}}
servers: {local: {backend: transformers}}
prompts: {react: {instruction: Craft the goal.}}
defaults: {lr: 1e-5, global_batch: 16, max_length: 2048}
stages:
  first:
    repeat:
      n: 5
      until: {stage: evaluate, metric: success, reaches: 0.8}
      carry: {policy: {from: base, next: train}}
      stages:
        explore: {kind: rollout, model: policy, split: train}
        train: {kind: sft, model: policy, data: explore}
        evaluate: {kind: evaluate, model: train, split: validation}
  second:
    repeat:
      n: 4
      until: {stage: evaluate, no_gain_for: 1}
      carry: {policy: {from: first.train, next: train}}
      stages:
        explore: {kind: rollout, model: policy, split: train}
        train: {kind: sft, model: policy, data: explore}
        evaluate: {kind: evaluate, model: train, split: validation}
  final: {kind: evaluate, model: second.train, split: test}
  aside: {kind: evaluate, model: base, split: test}
"""


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


def test_no_step_runs_what_may_never_be(tmp_path: Path, table: BackendTable) -> None:
    """Neither by asking for it, nor because it would share the start of a server."""
    spec = tmp_path / "steps.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    compiled = compile_spec(spec, {}, table)
    module, plan = compiled.module, compiled.plan
    assert module is not None
    assert plan is not None
    of_two_rounds = [
        session
        for session in plan.sessions
        if {"first.1.evaluate", "first.2.explore"}
        <= {job.partition(":")[0] for job in session.members}
    ]
    assert of_two_rounds, "the next round's episodes share a server with this round's measure"
    everything = {job.id for job in plan.jobs}

    def step(first: tuple[float, ...], second: tuple[float, ...], needed: set[str]) -> object:
        rules = [each.rule for each in module.stopping]
        known = [so_far(rules[0], first), so_far(rules[1], second, planned=4)]
        found = step_before(plan, module.stopping, known, needed)
        if found is None:
            return None
        together = {name for each in found.plan.sessions for name in each.members}
        return found.stages, any(name.startswith("first.2.") for name in together)

    assert step((), (), everything) == (("first.1.evaluate",), False)
    assert step((0.5,), (), everything) == (("first.2.evaluate",), True)
    # Nobody waits for a decision between the last two rounds of a repeat that comes to its end.
    assert step((0.1,) * 4, (), everything) == (("second.1.evaluate",), True)
    assert step((0.1,) * 5, (0.1, 0.2, 0.3), everything) is None
    # What does not rest on rounds that may never be waits for nothing.
    for stage in ("aside", "first.1.train"):
        needed = {job.id for job in plan.jobs if job.stage == stage}
        assert step((), (), needed) is None
