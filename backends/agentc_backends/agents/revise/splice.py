"""Rows of an SFTDataset from paths of a tree (Agent-R, section 3.2, eq. 3 and 6), and trials of
spliced ones in the environment.

A spliced row is the opening, the bad actions up to the cut, the signal, and the good actions from
where the two paths part, by identity of nodes. The published method never tries out whether the
good part still works after the bad one: items were used up, doors shut, the episode ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentc_backends.agents.common.episode import EpisodeSession, EpisodeSource, Step
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.prompts import EpisodePrompt, observation_message, reply_text
from agentc_backends.agents.common.runner import LostCheck, with_retries
from agentc_backends.agents.revise.judge import Cut, cancel_all
from agentc_backends.agents.revise.pairs import Message, Pair, ReplyNode, RevisionTree, Steps
from agentc_backends.agents.revise.rules import SignalRules, SplicedPart


def shared_length(one: Steps, other: Steps) -> int:
    """How many first actions two paths of a tree have in common."""
    length = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine.id != theirs.id:
            break
        length += 1
    return length


def signal_reply(signal: SignalRules, thought: int) -> str:
    """The reply between the bad and the good part, in the form of the agent's own replies."""
    prompt = EpisodePrompt("", None, (), signal.reply_format)
    sentence = signal.thoughts[thought]
    if signal.reply_format == "react_inline":
        sentence = sentence.rstrip(".")  # that format sets a full stop of its own
    return reply_text(prompt, signal.action, sentence)


def spliced_row(
    part: SplicedPart, pair: Pair, cut: Cut, signal: SignalRules, prefix: str
) -> dict[str, Any]:
    """The row of a pair whose bad path is kept to `cut.length` actions. `prefix` stands before
    observations, as it did when the trees were searched."""
    assert cut.length is not None
    tree = pair.tree
    bad, good = tree.steps(pair.bad)[: cut.length], tree.steps(pair.good)
    rest = good[shared_length(bad, good) :]
    messages = _beginning(tree, prefix)
    for node in bad:
        messages += _turn(node, prefix, loss=False)
    messages.append(
        {"role": "assistant", "content": signal_reply(signal, pair.thought), "loss": True}
    )
    messages.append(observation_message(prefix, signal.acknowledgement))
    for node in rest:
        messages += _turn(node, prefix, loss=True)
    return {
        **_facts(tree, f"{part[0]}{pair.good}-{pair.bad}", messages[:-1], good[-1].reward),
        "part": part,
        "bad_reward": tree.nodes[pair.bad].reward,
        "bad_actions": len(bad),
        "flagged": cut.flagged,
        "signal": pair.thought,
    }


def trajectory_row(part: str, tree: RevisionTree, leaf: ReplyNode, prefix: str) -> dict[str, Any]:
    """The row of a whole path, trained throughout."""
    messages = _beginning(tree, prefix)
    for node in tree.steps(leaf.id):
        messages += _turn(node, prefix, loss=None)
    return {**_facts(tree, f"{part[0]}{leaf.id}", messages[:-1], leaf.reward), "part": part}


def _beginning(tree: RevisionTree, prefix: str) -> list[Message]:
    given = [message for turn in tree.given for message in _turn(turn, prefix, loss=False)]
    return [*(dict(message) for message in tree.opening), *given]


def _facts(
    tree: RevisionTree, suffix: str, messages: list[Message], reward: float
) -> dict[str, Any]:
    """Fields of every row; ids are the same in every run and distinct over inputs. What the
    environment said last is left out: nobody answers it."""
    return {
        "id": f"{tree.name}/{suffix}",
        "task_id": tree.task_id,
        "messages": messages,
        "prompt_length": len(tree.opening),
        "reward": reward,
        "source": "policy",
        **({} if tree.origin is None else {"origin": dict(tree.origin)}),
    }


def _turn(node: ReplyNode, prefix: str, *, loss: bool | None) -> Iterator[Message]:
    reply: Message = {"role": "assistant", "content": node.reply}
    if node.cut:
        reply["cut"] = True
    if loss is not None:
        reply["loss"] = loss
    yield reply
    yield observation_message(prefix, node.observation)


_SAME = 1e-6
"""Rewards that differ by less are equal: sums of floats differ by rounding."""

Because: TypeAlias = Literal["ended_before_signal", "signal_ended", "ended_early", "other_reward"]


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a splice. `because` says why it is not `verified`; `same_observations`: the good
    part showed what the row says, spaces aside."""

    verified: bool
    because: Because | None
    reward: float
    same_observations: bool


class Replayer:
    """Tries splices out, each once; trials are journaled."""

    def __init__(
        self,
        world: EpisodeSource,
        signal_action: str,
        reward_kind: str,
        lost: LostCheck,
        journal: Journal,
    ) -> None:
        self._world = world
        self._signal_action = signal_action
        self._reward_kind = reward_kind
        self._lost = lost
        self._journal = journal
        self._trials: dict[tuple[str, int, int], asyncio.Task[Trial]] = {}

    async def trial(self, pair: Pair, length: int) -> Trial:
        """Try a pair out whose bad path is kept to `length` actions. Pairs that come to the same
        actions share a trial. Raises InfrastructureError, ServerLostError."""
        bad = pair.tree.steps(pair.bad)[:length]
        key = (pair.tree.name, bad[-1].id, pair.good)
        if key not in self._trials:
            self._trials[key] = asyncio.create_task(self._try(pair, bad))
        return await asyncio.shield(self._trials[key])

    def close(self) -> None:
        """Stop what is still in flight."""
        cancel_all(self._trials.values())

    async def _try(self, pair: Pair, bad: Steps) -> Trial:
        known = self._journal.finished.get((pair.tree.name, bad[-1].id, pair.good))
        if known is None:
            trial = await with_retries(lambda: self._play(pair, bad), self._lost, pair.name)
            self._journal.append(
                {
                    "end": "played",
                    "tree": pair.tree.name,
                    "bad": bad[-1].id,
                    "good": pair.good,
                    "trial": [
                        trial.verified,
                        trial.because,
                        trial.reward,
                        trial.same_observations,
                    ],
                }
            )
            return trial
        return Trial(*known["trial"])

    async def _play(self, pair: Pair, bad: Steps) -> Trial:
        tree = pair.tree
        good = tree.steps(pair.good)
        rest = good[shared_length(bad, good) :]
        rewards: list[float] = []
        same = True
        async with self._world.open(tree.task_id, tree.prompt_seed) as session:
            # Replies without an action never reached the environment.
            before = [node.action for node in (*tree.given, *bad) if node.action]
            if not await _carry_out(session, before, rewards):
                return self._failed("ended_before_signal", rewards)
            if not await _carry_out(session, [self._signal_action], rewards):
                return self._failed("signal_ended", rewards)
            acted = [node for node in rest if node.action]
            for number, node in enumerate(acted):
                step = await session.step(node.action)
                rewards.append(step.reward)
                same = same and step.observation.split() == node.observation.split()
                if _over(step) and number + 1 < len(acted):
                    return self._failed("ended_early", rewards)
        reward = self._score(rewards)
        if abs(reward - good[-1].reward) > _SAME:
            return Trial(False, "other_reward", reward, same)
        return Trial(True, None, reward, same)

    def _failed(self, because: Because, rewards: Sequence[float]) -> Trial:
        return Trial(False, because, self._score(rewards), False)

    def _score(self, rewards: Sequence[float]) -> float:
        """The score of the episode so far, as the search reckons it."""
        if not rewards:
            return 0.0
        match self._reward_kind:
            case "sum":
                return max(sum(rewards), 0.0)
            case "max":
                return max(*rewards, 0.0)
            case _:
                return max(rewards[-1], 0.0)


async def _carry_out(session: EpisodeSession, actions: Sequence[str], rewards: list[float]) -> bool:
    """Carry out actions; False when the episode is over, so that nothing can follow."""
    for action in actions:
        step = await session.step(action)
        rewards.append(step.reward)
        if _over(step):
            return False
    return True


def _over(step: Step) -> bool:
    # A negative reward ends an episode of a search, whatever the environment says.
    return step.done or step.reward < 0


def trial_fields(trial: Trial) -> dict[str, Any]:
    """What a row says of its trial."""
    return {
        "verified": trial.verified,
        "unverified_because": trial.because,
        "same_observations": trial.same_observations,
    }
