"""The bare-PyTorch experiment on SWEET-RL: weights of turns, its scores, episodes, pairs."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from benchmarks.sweet_rl import seed
from benchmarks.sweet_rl.critic import Turn, with_hidden
from benchmarks.sweet_rl.learning import Update, prefer
from benchmarks.sweet_rl.pairs import actor_rows, ranked_pairs
from benchmarks.sweet_rl.play import (
    MARKER,
    Measured,
    expert_episode,
    informed_episode,
    opening,
    resumed,
    step,
)
from benchmarks.sweet_rl.seed import Settings
from benchmarks.sweet_rl.speaker import Speaker, new_speaker
from benchmarks.sweet_rl.tables import interval, print_tables

from agentc_backends.environments.colbench.house_prices import question, source, task

TASKS = [task("train", index) for index in range(60)]


@pytest.fixture(scope="module")
def speaker() -> Speaker:
    rng = Random(0)
    return new_speaker([expert_episode(each, rng).messages for each in TASKS], 0)


def test_an_expert_that_was_told_everything_passes() -> None:
    rng = Random(1)
    for each in TASKS:
        episode = expert_episode(each, rng)
        assert episode.formed
        assert episode.score == (1.0 if episode.told else 0.2)


def test_an_expert_that_has_read_the_reference_wastes_no_question() -> None:
    for each in TASKS:
        episode = informed_episode(each)
        assert (episode.kinds, episode.score) == (["useful", "answer"], 1.0)
        told, *rest = with_hidden(episode, episode.messages)
        assert each.reference in told["content"]
        assert rest == episode.messages[1:]


def test_a_question_is_useful_once_and_no_code_is_no_answer() -> None:
    episode = opening(TASKS[0])
    kind = next(iter(TASKS[0].prices))
    assert step(episode, question(kind)) == "useful"
    assert step(episode, question(kind)) == "useless"
    assert step(episode, "What do you mean?") == "useless"
    assert episode.messages[-1]["content"] == "I do not know. Answer now."
    assert resumed(episode, 2).messages == episode.messages[:5]
    step(episode, question(kind))
    assert (episode.score, episode.formed) == (0.0, False)


@pytest.mark.parametrize("text", ["x = 1", "def fare(kind, n):\n    return n", ""])
def test_an_answer_in_another_form_scores_nothing(text: str) -> None:
    episode = opening(TASKS[0])
    step(episode, f"{MARKER}\n{text}")
    assert (episode.score, episode.formed) == (0.0, False)


@pytest.mark.parametrize(("normalisation", "total"), [("turn", 3.0), ("trajectory", 1.0)])
def test_weights_are_means_of_turns_or_of_all(
    speaker: Speaker, normalisation: str, total: float
) -> None:
    episode = opening(TASKS[0])
    for kind in TASKS[0].kinds[:2]:
        step(episode, question(kind))
    step(episode, f"{MARKER}\n{source(TASKS[0].function, {})}")
    row = speaker.row(episode.messages, normalisation=normalisation)
    assert sum(row.weights) == pytest.approx(total)
    hidden = speaker.row(with_hidden(episode, episode.messages), normalisation=normalisation)
    assert [w for w in hidden.weights if w] == [w for w in row.weights if w]


def test_scores_are_weighted_sums_of_log_probs(speaker: Speaker) -> None:
    rows = [
        speaker.row(expert_episode(each, Random(2)).messages, normalisation="turn")
        for each in TASKS[:5]
    ]
    for row, found in zip(rows, speaker.scores(rows), strict=True):
        with torch.no_grad():
            logits = speaker.model(torch.tensor([row.ids])).logits[0, :-1].log_softmax(-1)
        log_probs = logits.gather(1, torch.tensor(row.ids[1:])[:, None])[:, 0]
        assert found == pytest.approx(float(log_probs @ torch.tensor(row.weights[1:])), abs=1e-3)


def test_replies_are_those_of_the_model(speaker: Speaker) -> None:
    """Of a model so sure that sampling is greedy: a padded batch, from which replies leave at
    unlike times, says what a plain loop without a cache says."""
    sure = speaker.copy()
    with torch.no_grad():
        sure.model.model.norm.weight *= 200
    talks = [expert_episode(each, Random(3)).messages for each in TASKS[:12]]
    waiting = [talk[: 1 + 2 * (i % 2)] for i, talk in enumerate(talks)]
    end = sure.encoder.tokenizer.eos_token_id
    plain = []
    for messages in waiting:
        ids = sure.encoder.encode_prompt(messages)
        first = len(ids)
        while len(ids) < first + 60 and ids[-1] != end:
            with torch.no_grad():
                ids.append(int(sure.model(torch.tensor([ids])).logits[0, -1].argmax()))
        reply = ids[first:-1] if ids[-1] == end else ids[first:]
        plain.append(sure.encoder.tokenizer.decode(reply))
    assert len(set(plain)) > 3
    assert sure.replies(waiting, sure.generator(0)) == plain


def test_preferences_raise_the_chosen_side(speaker: Speaker) -> None:
    turns = [Turn(opening(each), 0, tuple(map(question, each.kinds))) for each in TASKS[:20]]
    scores = [
        {question(k): float(k in t.episode.task.prices) for k in t.episode.task.kinds}
        for t in turns
    ]
    pairs = ranked_pairs(turns, scores, seed=0)
    assert len(pairs) == 3 * len(turns)  # The priced kind against the bottom half.
    assert all(scores[turns.index(turn)][a] > scores[turns.index(turn)][b] for turn, a, b in pairs)
    taught = speaker.copy()
    found = prefer(taught, actor_rows(speaker, pairs, "none"), Update(2e-3, 0.3, 0.1, 6), 0)
    assert sum(found[-5:]) / 5 > 0.8


def test_like_meets_like() -> None:
    answer = f"{MARKER}\n{source(TASKS[0].function, {})}"
    texts = (answer, *map(question, TASKS[0].kinds[:3]))
    turn = Turn(opening(TASKS[0]), 0, texts)
    score = {text: -float(rank) for rank, text in enumerate(texts)}
    pairs = ranked_pairs([turn], [score], seed=0, alike=1.5)
    assert pairs
    assert all(answer not in (a, b) for _, a, b in pairs)


def test_an_interval_is_wider_when_seeds_disagree() -> None:
    calm = interval({seed: [0.4, 0.6] * 50 for seed in range(5)})
    torn = interval({seed: [seed / 4] * 100 for seed in range(5)})
    assert calm[0] == torn[0] == pytest.approx(0.5)
    assert torn[2] - torn[1] > 3 * (calm[2] - calm[1])


def _settings(folder: Path, steps: tuple[int, ...], nll: float = 0.01) -> Settings:
    critic = Update(lr=1e-3, beta=1.0, nll_weight=nll, epochs=6)
    return Settings(folder=folder, seed=0, steps=steps, custom=0.8, critic=critic)


def test_files_and_lines_say_which_policy_and_critic_made_them(
    tmp_path: Path, speaker: Speaker, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    ways = [
        _settings(tmp_path, (400,)), _settings(tmp_path, (400, 200)), _settings(tmp_path, (400,), 1)
    ]  # fmt: skip
    assert ways[0].path("turns") == ways[2].path("turns") != ways[1].path("turns")
    shares = iter((0.125, 0.25, 0.375, 0.5))

    def measured(*_: object) -> Measured:
        tests = next(shares)
        return Measured(tests, 0, 0, 0, 0, 1, (tests,) * 4)

    monkeypatch.setattr(seed, "measure", measured)
    seed._measure(ways[0], speaker, "start", "test", 0.0)
    for way in ways:
        seed._measure(way, speaker, "published", "test", 0.0, 100)
    capsys.readouterr()
    print_tables(tmp_path)
    arms = [
        line.split(" | ") for line in capsys.readouterr().out.splitlines() if "| test |" in line
    ]
    assert [(row[1], row[2], row[6][:5]) for row in arms] == [
        ("400", "-", "0.125"),
        ("400", "100, NLL 0.01, 6 epochs", "0.250"),
        ("400-200", "100, NLL 0.01, 6 epochs", "0.375"),
        ("400", "100, NLL 1, 6 epochs", "0.500"),
    ]
