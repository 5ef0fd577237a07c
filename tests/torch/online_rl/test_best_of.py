"""The choice among candidates by a critic (CHAI), and the value that the critic then holds V to."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from agentc_backends.trainers.online_rl.critic import (
    BestOf,
    Critic,
    Utterances,
    critic_losses,
    index_of_best,
    target_copy,
)
from agentc_backends.trainers.online_rl.readers import Reader, Text, TextPrefix, whole_text
from agentc_backends.trainers.online_rl.settings import CriticPhase

STATES = [whole_text(Text((3, 4))), whole_text(Text((5,))), whole_text(Text((3, 4)))]
SAID = [whole_text(Text((6,))), whole_text(Text((7, 8))), whole_text(Text((9,)))]
DRAWN = [
    whole_text(Text(ids)) for ids in ((6,), (8,), (7, 8), (6, 6), (9,), (9,), (8,), (7,), (6, 9))
]


class Table(Reader):
    """Features of a text by its tokens alone, so that a pass over several is exact."""

    width = 4

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.table = torch.nn.Embedding(10, self.width)

    def forward(self, prefixes: Sequence[TextPrefix]) -> Tensor:
        return torch.stack([self.table(torch.tensor(one.ids)).mean(dim=0) for one in prefixes])


def critics(seed: int = 0) -> tuple[Critic, Critic]:
    """One critic, and a slow copy of another."""
    return Critic(Table(seed), 8), target_copy(Critic(Table(seed + 1), 8))


def q_of(critic: Critic, state: TextPrefix, reply: TextPrefix) -> tuple[float, float]:
    with torch.no_grad():
        q = critic.q(critic.read([state]), critic.read([reply]))
    return float(q.first), float(q.second)


def test_the_highest_of_each_row_and_of_equal_ones_the_first() -> None:
    draws_by_rows = torch.tensor([[1.0, 2.0], [1.0, 3.0], [0.0, 3.0]])
    assert index_of_best(draws_by_rows.T).tolist() == [0, 1]
    wide = torch.zeros(3, 1000)
    wide[1, [400, 700]] = 1.0
    wide[2, 999] = 1.0
    assert index_of_best(wide).tolist() == [0, 400, 999]


def test_the_pick_is_the_highest_by_the_smaller_head() -> None:
    critic, _ = critics()
    picked = set()
    for state in STATES[:2]:
        for start in range(len(DRAWN) - 3):
            part = DRAWN[start : start + 4]
            least = [min(q_of(critic, state, reply)) for reply in part]
            pick = BestOf(critic, 4).pick(state.ids, [reply.ids for reply in part])
            assert pick == least.index(max(least))
            picked.add(pick)
    assert len(picked) > 2
    assert BestOf(critic, 3).pick((3,), [(6,), (6,), (6,)]) == 0


def test_a_pick_follows_the_weights_of_now() -> None:
    """A run goes on learning behind one choice."""
    critic, _ = critics()
    choice = BestOf(critic, 3)
    before = choice.pick((3, 4), [(6,), (8,), (7, 8)])
    with torch.no_grad():
        for mine in critic.parameters():
            mine.copy_(-mine)
        for head in (critic.q1, critic.q2):
            head[-1].weight.mul_(-1)
    least = [min(q_of(critic, STATES[0], reply)) for reply in DRAWN[:3]]
    after = choice.pick((3, 4), [(6,), (8,), (7, 8)])
    assert after == least.index(max(least))
    assert after != before


def v_targets(critic: Critic, target: Critic, rank_with: str) -> list[tuple[float, float]]:
    """What V1 and V2 are held to, got out of their losses of one row each."""
    found = []
    for number in range(len(STATES)):
        batch = Utterances(
            states=[STATES[number]],
            replies=[SAID[number]],
            rewards=torch.zeros(1),
            following=[None],
            to_go=torch.zeros(1),
            drawn=DRAWN[3 * number : 3 * number + 3],
        )
        settings = CriticPhase(discount=0.9, target_rate=0.1, rank_with=rank_with)  # type: ignore[arg-type]
        loss = critic_losses(critic, target, batch, settings)
        found.append((loss.v1.item(), loss.v2.item()))
    return found


def test_v_is_held_to_the_best_of_the_candidates() -> None:
    """The slow copy says how much the pick is worth, each head to its twin, whoever has picked."""
    critic, target = critics()
    for rank_with, ranking in (("target", target), ("online", critic)):
        expected, picks = [], []
        for number, state in enumerate(STATES):
            part = DRAWN[3 * number : 3 * number + 3]
            least = [min(q_of(ranking, state, reply)) for reply in part]
            picks.append(least.index(max(least)))
            q1, q2 = q_of(target, state, part[picks[-1]])
            with torch.no_grad():
                v = critic.v(critic.read([state]))
            expected.append(((float(v.first) - q1) ** 2, (float(v.second) - q2) ** 2))
        for found, known in zip(v_targets(critic, target, rank_with), expected, strict=True):
            torch.testing.assert_close(torch.tensor(found), torch.tensor(known))
        assert len(set(picks)) > 1


def test_the_pick_is_the_same_in_a_batch_of_several_states() -> None:
    critic, target = critics()
    batch = Utterances(
        states=STATES,
        replies=SAID,
        rewards=torch.zeros(3),
        following=[None] * 3,
        to_go=torch.zeros(3),
        drawn=DRAWN,
    )
    loss = critic_losses(critic, target, batch, CriticPhase(discount=0.9, target_rate=0.1))
    alone = torch.tensor(v_targets(critic, target, "target")).mean(dim=0)
    torch.testing.assert_close(torch.stack([loss.v1, loss.v2]).detach(), alone)
