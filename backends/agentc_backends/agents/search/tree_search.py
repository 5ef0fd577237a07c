"""Grows the tree of one task: samples children, acts them out, selects, until nothing is left.

Knows neither HTTP nor files: `Policy` and `SessionSource` are what it needs of `common/connect.py`.
Agent-R's search as released (`mcts_tc.py`), but for the order of requests: children of a node are
sampled and acted out side by side, and what is drawn depends on seeds alone.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentc_backends.agents.common.actions import (
    has_mark,
    last_line,
    parse_action,
    without_turn_numbers,
)
from agentc_backends.agents.common.episode import (
    EpisodeRules,
    Policy,
    Reply,
    Step,
)
from agentc_backends.agents.common.prefixes import (
    EPISODE_OVER,
    Prefix,
    PrefixTurn,
    SameState,
    answer_difference,
    at_turn,
    missing_action,
    task_difference,
)
from agentc_backends.agents.common.prompts import Message, observation_message, opening_messages
from agentc_backends.agents.common.seeds import child_seed
from agentc_backends.agents.search.navigator import (
    Copying,
    Path,
    SessionSource,
    StateNavigator,
    is_verified,
)
from agentc_backends.agents.search.settings import SearchRules
from agentc_backends.agents.search.tree import (
    End,
    OpeningTurn,
    RequestBudget,
    Tree,
    TreeNode,
    TreeRoot,
)
from agentc_backends.clients.errors import ContextOverflowError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachRules:
    """How the environment is brought to nodes; never changes a tree, only what it costs."""

    copying: Copying
    sessions: int
    same: SameState
    verify_share: float


class TreeSearch:
    """A tree while it grows; `row` gives its line of trees.jsonl, at any time."""

    def __init__(self, episode: EpisodeRules, rules: SearchRules, root: TreeRoot) -> None:
        self._episode = episode
        self._rules = rules
        self._root = root
        self.tree = Tree(rules.c_uct, random.Random(root.tie_seed))
        low, high = episode.reward_range
        self._nothing = min(max(0.0, low), high)
        self.tree.root.reward = self._nothing
        self.given: list[OpeningTurn] = []
        self.budget = RequestBudget()
        self.opening: list[Message] = opening_messages(episode.prompt, "")
        self._step_limit = math.inf

    async def run(self, policy: Policy, world: SessionSource, how: ReachRules) -> dict[str, Any]:
        """Grow the tree to its end and give its row; one whose prefix leads elsewhere is
        `diverged`.

        Raises InfrastructureError when a server fails, FatalError when the environment is not
        deterministic, and ContextOverflowError when a prompt is too long and `on_overflow` is
        `error`.
        """
        reach = StateNavigator(
            world,
            self._root.task_id,
            self._root.prompt_seed,
            copying=how.copying,
            sessions=how.sessions,
            same=how.same,
            budget=self.budget,
        )
        wrong: str | None = None
        try:
            # The task's own text keeps its lines, as in the released code.
            first, limit = await reach.open()
            self.opening = opening_messages(self._episode.prompt, first)
            self._step_limit = math.inf if limit is None else limit
            if self._root.prefix is not None:
                wrong = await self._play_again(self._root.prefix, first, reach, how.same)
            if wrong is None:
                await self._descend(policy, reach, how)
        finally:
            await reach.close()
        if wrong is not None:
            return {**self.row("error", wrong), "diverged": True}
        return self.row("searched")

    def row(self, end: Literal["searched", "error"], error: str | None = None) -> dict[str, Any]:
        """The tree as it is now."""
        prefix = {"prefix": [turn.row() for turn in self.given]} if self._root.prefix else {}
        return {
            "id": self._root.id,
            "task_id": self._root.task_id,
            "split": self._episode.split,
            "seed": self._root.seed,
            "prompt_seed": self._root.prompt_seed,
            "messages": self.opening,
            **self._root.origin(),
            **prefix,
            "end": end,
            "error": error,
            "iterations": self.tree.descents,
            "nodes": [node.row() for node in self.tree],
            "budget": self.budget.row(),
        }

    async def _play_again(
        self, prefix: Prefix, shown: str, reach: StateNavigator, same: SameState
    ) -> str | None:
        """Carry the turns of `prefix` out, so that the root is the state behind them; a sentence
        where the environment differs from the source. `shown` is its first text."""
        wrong = task_difference(prefix.source, shown, same)
        if wrong is not None:
            return wrong
        for number, turn in enumerate(prefix.turns, start=1):
            wrong = await self._replay_turn(turn, reach, same)
            if wrong is not None:
                return at_turn(number, prefix.source, wrong)
        root = self.tree.root
        root.reward = self.given[-1].reward if self.given else self._nothing
        if root.reward < 0:
            root.reward = 0.0
            self.tree.close(root, "negative")
        return None

    async def _replay_turn(
        self, turn: PrefixTurn, reach: StateNavigator, same: SameState
    ) -> str | None:
        action = self._action(turn.reply) if turn.actions is None else "".join(turn.actions)
        score = self.given[-1].reward if self.given else self._nothing
        wrong: str | None = None
        if action:
            step = await reach.follow((*self._path(self.tree.root), action))
            observation = self._flattened(step.observation)
            score = self._score(score, step.reward, first=not self.given)
            told = self._message_text(observation)
            wrong = answer_difference(turn, told, step.reward, score, same)
            wrong = EPISODE_OVER if step.done else wrong
        else:
            score = self._without_action(score)
            if turn.actions is None:
                wrong = missing_action(turn, self._message_text(self._rules.invalid_message))
            # Whatever it was told then, which its replies answer.
            observation = turn.answer.removeprefix(self._episode.prompt.observation_prefix)
        self.given.append(
            OpeningTurn(
                reply=turn.reply, action=action, observation=observation, reward=score, cut=turn.cut
            )
        )
        return wrong

    async def _descend(self, policy: Policy, reach: StateNavigator, how: ReachRules) -> None:
        tree = self.tree
        for _ in range(self._rules.iterations):
            if tree.root.terminal:
                return
            tree.descents += 1
            node: TreeNode | None = tree.root
            while node is not None and not node.terminal:
                if not node.children:
                    await self._expand(node, policy, reach, how)
                node = tree.select(node)

    async def _expand(
        self, node: TreeNode, policy: Policy, reach: StateNavigator, how: ReachRules
    ) -> None:
        replies = await self._sample(node, policy)
        if replies is None:
            self.tree.close(node, "overflow")
            return
        acted = self._different(
            [(self._normalised(reply), self._action(reply.text)) for reply in replies]
        )
        path = self._path(node)
        actions = list(dict.fromkeys(action for _, action in acted if action))
        steps = await reach.act(path, actions) if actions else {}
        # A reply without an action changes nothing, and the agent is told so.
        rest = Step(self._rules.invalid_message, 0.0, False)
        children = [
            self._child(node, reply, action, steps.get(action, rest)) for reply, action in acted
        ]
        self.tree.attach(node, children)
        if how.copying == "replay":
            return
        for child in children:
            copied = (*path, child.action)
            if child.action and is_verified(how.verify_share, self._root.task_id, copied):
                await reach.verify(copied, f"node {child.id}")

    async def _sample(self, node: TreeNode, policy: Policy) -> list[Reply] | None:
        """Replies to a node's conversation, all in flight at once; None when the conversation is
        too long for the server and `on_overflow: end` makes that the node's end."""
        if node.parent is not None:
            node.forgotten = max(node.forgotten, node.parent.forgotten)
        # A prompt that was too long is tried with one request before the others are sent too.
        fits: list[Reply] = []
        alone = False
        while True:
            messages = self._prompt(node)
            numbers = range(len(fits), 1 if alone and not fits else self._rules.children)
            try:
                fits += await self._replies(node, messages, numbers, policy)
            except ContextOverflowError:
                if self._rules.on_overflow == "error":
                    raise
                if self._rules.on_overflow == "end" or not self._can_forget(node):
                    return None
                node.forgotten += 1
                alone = True
                continue
            if len(fits) == self._rules.children:
                return fits

    async def _replies(
        self, node: TreeNode, messages: Sequence[Message], numbers: range, policy: Policy
    ) -> list[Reply]:
        self.budget.model_calls += len(numbers)
        requests = [
            policy.reply(messages, child_seed(self._root.seed, node.id, number), self._root.id)
            for number in numbers
        ]
        replies: list[Reply] = []
        for answer in await asyncio.gather(*requests, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            replies.append(answer)
        self.budget.samples += len(replies)
        self.budget.prompt_tokens += sum(reply.prompt_tokens for reply in replies)
        self.budget.completion_tokens += sum(reply.completion_tokens for reply in replies)
        return replies

    def _prompt(self, node: TreeNode) -> list[Message]:
        """The node's conversation without what is forgotten: the observations after the first
        replies, each with the next reply. The very first reply stays, as in the released code."""
        prompt = self._episode.prompt
        prefix, role = prompt.observation_prefix, prompt.answered_by
        turns = [message for given in self.given for message in given.messages(prompt)]
        for passed in node.lineage():
            turns.append({"role": "assistant", "content": passed.reply})
            turns.append(observation_message(prefix, passed.observation, role))
        del turns[1 : 1 + 2 * node.forgotten]
        return [*self.opening, *turns]

    def _can_forget(self, node: TreeNode) -> bool:
        return len(self.given) + node.depth - node.forgotten > 1

    def _path(self, node: TreeNode) -> Path:
        """The actions that lead to a node from the start of the task."""
        return (*(turn.action for turn in self.given if turn.action), *node.path())

    def _normalised(self, reply: Reply) -> Reply:
        """A reply as the tree keeps it and siblings are compared by."""
        if self._rules.turn_numbers == "keep":
            return reply
        return replace(reply, text=without_turn_numbers(reply.text))

    def _action(self, reply: str) -> str:
        """The action of a reply as it was given; "" when it has none."""
        rules = self._rules
        numbered = rules.turn_numbers == "drop"
        action = parse_action(
            reply,
            self._episode.prompt.reply_format,
            span=rules.action_span,
            space=rules.action_space,
            numbered=numbered,
        )
        marked = has_mark(without_turn_numbers(reply) if numbered else reply)
        if action is None and rules.no_action == "last_line" and not marked:
            action = last_line(reply)
        return action or ""

    def _different(self, acted: Sequence[tuple[Reply, str]]) -> list[tuple[Reply, str]]:
        """Siblings that are kept: the first of equal ones."""
        kept: dict[object, tuple[Reply, str]] = {}
        for number, (reply, action) in enumerate(acted):
            what = {"reply": reply.text, "action": action, "none": number}[self._rules.dedup]
            kept.setdefault(what, (reply, action))
        return list(kept.values())

    def _child(self, parent: TreeNode, reply: Reply, action: str, step: Step) -> TreeNode:
        first = not self.given and parent.depth == 0
        if action:
            score = self._score(parent.reward, step.reward, first=first)
        else:
            score = self._without_action(parent.reward)
        depth = parent.depth + 1
        end: End | None = None
        if score < 0:
            end, score = "negative", 0.0
        elif step.done or len(self.given) + depth >= self._step_limit:
            end = "done"
        elif self._root.depth + depth > self._rules.depth:
            end = "depth"
        return self.tree.new_child(
            parent,
            reply=reply.text,
            action=action,
            observation=self._flattened(step.observation),
            reward=score,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cut=reply.stop == "length",
            end=end,
            terminal=end is not None,
        )

    def _score(self, before: float, reward: float, *, first: bool) -> float:
        """The score of the episode so far, by the environment's kind of reward."""
        match self._episode.reward_kind:
            case "sum":
                return before + reward
            case "max":
                return reward if first else max(before, reward)
            case _:
                return reward

    def _without_action(self, before: float) -> float:
        """The same after a reply that the environment never saw."""
        return before if self._rules.invalid_reward == "keep" else self._nothing

    def _message_text(self, observation: str) -> str:
        message = observation_message(self._episode.prompt.observation_prefix, observation)
        return str(message["content"])

    def _flattened(self, observation: str) -> str:
        if self._rules.flatten_observations:
            return observation.replace("\n", " ").replace("\t", " ")
        return observation
