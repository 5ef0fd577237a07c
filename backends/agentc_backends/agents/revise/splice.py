"""Makes rows of an SFTDataset from paths of a tree (Agent-R, section 3.2, eq. 3 and 6).

A spliced row is the opening, the bad actions up to the cut, the signal, and the good actions from
where the two paths part. They part by identity of nodes, never by equal texts. Turns that were
given before the tree's root follow the opening of every row, and are never trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentc_backends.agents.common.prompt import EpisodePrompt, observation_message, reply_text
from agentc_backends.agents.revise.judge import Cut
from agentc_backends.agents.revise.pairs import Pair
from agentc_backends.agents.revise.rules import SignalRules, SplicedPart
from agentc_backends.agents.revise.trees import Message, ReplyNode, RevisionTree, Steps


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
