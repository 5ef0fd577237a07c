"""A spec with rounds, and what is read of it."""

from __future__ import annotations

from collections.abc import Callable

from agentc.ir.module import Module

Read = Callable[..., tuple]

HEAD = """\
agentc: 1
name: demo
environments:
  craft: {backend: textcraft, max_depth: 2}
servers:
  local: {backend: transformers}
models:
  base: {backend: scratch, corpus: expert}
"""
STAGES = """\
stages:
  expert: {kind: expert, split: train}
  sft: {kind: sft, model: base, data: [expert], lr: 1e-3, global_batch: 8, max_length: 512}
  eto:
    repeat:
      n: 3
      carry:
        policy: {from: sft, next: dpo}
      stages:
        explore: {kind: rollout, model: policy, split: train}
        pairs: {kind: pair, expert: expert, rollouts: explore}
        dpo:
          kind: dpo
          model: policy
          reference: sft
          data: pairs
          lr: {per_round: [1e-5, 1e-6, 1e-7]}
          beta: "{{ 0.1 if round == 1 else 0.5 }}"
          global_batch: 8
          max_length: 512
        evaluate: {kind: evaluate, model: dpo, split: test}
  results: {kind: compare, of: ["eto.*.evaluate"], baseline: eto.1.evaluate}
  last: {kind: evaluate, model: eto.dpo, split: test}
"""


def module(read_text: Read, text: str, **params: str) -> Module:
    _, found, sink = read_text(text, **params)
    assert [f"{each.code} {each.message}" for each in sink.sorted()] == []
    assert found is not None
    return found


def codes(read_text: Read, text: str, **params: str) -> list[str]:
    return [each.code for each in read_text(text, **params)[2].sorted()]
