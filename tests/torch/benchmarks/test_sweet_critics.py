"""The measure of the tiny spec's critics: its tasks are those of the spec, a pair counts by turn,
and what is shown to a critic is what it was trained behind."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from benchmarks.sweet_critics import (
    BASELINE,
    CRITICS,
    HEAD,
    UNTRAINED,
    Checked,
    by_turn,
    held_out_tasks,
    log_probs,
    table,
)
from benchmarks.sweet_rl.critic import Order, Turn, with_hidden
from benchmarks.sweet_rl.play import expert_episode, opening
from benchmarks.sweet_rl.speaker import new_speaker

from agentc_backends.environments.colbench.invented import invent
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import task_id


def test_tasks_are_those_of_the_spec_s_environment() -> None:
    settings = ColBenchSettings(family="prices", invented_tasks=9200)
    ids = list(invent(settings))[8600:8900]
    assert [task_id(each.description, each.reference) for each in held_out_tasks()] == ids


def test_log_probabilities_are_of_the_reply_alone_behind_what_is_shown() -> None:
    from random import Random

    tasks = held_out_tasks()[:3]
    dialogues = [expert_episode(each, Random(0)).messages for each in tasks]
    speaker = new_speaker(dialogues, 0)
    turn = Turn(opening(tasks[0]), 0, ("Is it?", "No.", "Is it?"))
    (mean,) = log_probs(speaker, [turn], lambda episode, said: said, summed=False)
    (total,) = log_probs(speaker, [turn], lambda episode, said: said, summed=True)
    (hidden,) = log_probs(speaker, [turn], with_hidden, summed=False)
    assert list(mean) == ["Is it?", "No."]
    for text in mean:
        said = [*turn.before(), {"role": "assistant", "content": text}]
        tokens = sum(t == 1 for t in speaker.encoder.encode(said).turns)
        assert total[text] == pytest.approx(mean[text] * tokens, rel=1e-5)
    assert all(hidden[text] != mean[text] for text in mean)


def test_shares_are_means_by_turn_and_differences_are_paired() -> None:
    sorts = ("useful", "useless")
    orders = [Order(0, "a", "b", sorts), Order(0, "a", "c", sorts), Order(2, "a", "b", sorts)]
    scores = [{"a": 1.0, "b": 0.0, "c": 2.0}, {}, {"a": 0.5, "b": 0.5}]
    shares = by_turn(orders, scores)
    assert shares == {0: 0.5, 2: 0.5}
    better = dict.fromkeys(shares, 0.75)
    every = dict.fromkeys((UNTRAINED, *CRITICS, HEAD), better) | {BASELINE: shares}
    lines = table({0: Checked(3, every), 1: Checked(3, every)})
    assert lines[0].startswith("2 seeds, 6 pairs of candidates at 4 held-out turns")
    assert "| `critic` | 0.750 [0.750, 0.750] | +0.250 [+0.250, +0.250] | 0.750, 0.750 |" in lines
