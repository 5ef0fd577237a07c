"""Asks the actor which action of a bad trajectory was its first mistake (Agent-R, section 3.2), and
reads its verdicts.

Each action is a question of its own: the task, what happened before, the action and its result.
Whether an action is bad depends on its path alone, so trajectories that begin alike share answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentc_backends.agents.common.actions import without_thinking
from agentc_backends.agents.common.episode import Policy, Reply
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.runner import LostCheck, with_retries
from agentc_backends.agents.revise.pairs import ReplyNode, RevisionTree, Steps
from agentc_backends.agents.revise.rules import JudgeRules
from agentc_backends.clients.errors import ContextOverflowError

Verdict: TypeAlias = Literal["good", "bad", "uncertain", "unparsed"]

_MARK = re.compile(r"judge?ment\s*[*_`]*\s*:", re.IGNORECASE)
_WORD = re.compile(r"[\s*_`\"'\[(<]*(good|bad|uncertain)[\s*_`\"'\])>.!]*", re.IGNORECASE)


def strict_verdict(answer: str) -> Verdict:
    """The one word after the last `Judgement:` (or `Judgment:`), markup and a full stop aside;
    "unparsed" when there is no mark, or anything but one of the three words after it. What a
    thinking block says is no verdict."""
    said = without_thinking(answer)
    marks = list(_MARK.finditer(said))
    if not marks:
        return "unparsed"
    found = _WORD.fullmatch(said, marks[-1].end())
    return found[1].lower() if found else "unparsed"  # type: ignore[return-value]


def published_verdict(answer: str) -> Verdict:
    """As the released code: what follows the last `Judgement:`, in that spelling (the whole answer
    without it), passes if it holds "good" or "uncertain" anywhere; all else is bad. So "Not good"
    passes, and an empty answer is bad."""
    rest = answer.split("Judgement:")[-1].lower()
    if "good" in rest:
        return "good"
    return "uncertain" if "uncertain" in rest else "bad"


OPENING = """\
You check the work of an agent that solves a task step by step. You are shown the task, a log of \
what the agent did so far, and its current step. Say whether the action of the current step was \
right.

Every step of the log has two lines: `Action:` is what the agent did, `Observation:` is what the \
environment answered.

There are three verdicts:
- Good: the action helps to solve the task.
- Bad: the action is a mistake: it is wrong, of no use, or makes the task harder.
- Uncertain: the action does neither, or the log does not show which."""

CLOSING = """\
Explain your reasons first. Then end with one line of this form, with one of the words Good, Bad \
and Uncertain, and nothing after it:
Judgement: <verdict>"""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one action; `row` is its line of judgements.jsonl."""

    verdict: Verdict
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cut:
    """How much of a bad trajectory is kept: its first `length` actions. `flagged` is the number
    (from 1) of the action that was found bad. Without a length the pair is left out, for the reason
    in `without`."""

    length: int | None
    flagged: int | None = None
    without: str | None = None


class Judge:
    """Finds the first bad action of paths. Answers are journaled, and `used` holds those that any
    path has asked for; `wanted` counts what would have been asked without sharing."""

    def __init__(
        self, rules: JudgeRules, policy: Policy, lost: LostCheck, journal: Journal
    ) -> None:
        self._rules = rules
        self._policy = policy
        self._lost = lost
        self._journal = journal
        self._asked: dict[tuple[str, int, str], asyncio.Task[Judgement]] = {}
        self.wanted = 0

    @property
    def used(self) -> list[dict[str, Any]]:
        """The rows of all answers, by tree, pair and node."""
        done = [task for task in self._asked.values() if task.done() and not task.cancelled()]
        rows = [task.result().row for task in done if task.exception() is None]
        return sorted(rows, key=lambda row: (row["tree"], row["pair"], row["node"]))

    async def cut(self, tree: RevisionTree, steps: Steps, shared: int, pair: str) -> Cut:
        """Where to cut a bad trajectory. `shared` is the number of its first actions that the good
        one takes as well; `pair` is the pair's name.

        Raises InfrastructureError when an answer cannot be had, ServerLostError when the server is
        gone.
        """
        rules = self._rules
        first = shared if rules.start == "divergence" else 0
        for number in range(first, len(steps)):
            self.wanted += 1
            judgement = await self._judgement(tree, steps, number, pair)
            if judgement.verdict == "unparsed":
                if rules.unparsed == "pair":
                    return Cut(None, without="unparsed")
                if rules.unparsed == "good":
                    continue
            elif judgement.verdict != "bad":
                continue
            return Cut(number + 1, flagged=number + 1)
        if rules.on_no_bad == "pair":
            return Cut(None, without="no_bad")
        return Cut(len(steps))

    def close(self) -> None:
        """Stop what is still in flight."""
        cancel_all(self._asked.values())

    async def _judgement(
        self, tree: RevisionTree, steps: Steps, number: int, pair: str
    ) -> Judgement:
        scope = pair if self._rules.once_per == "pair" else ""
        key = (tree.name, steps[number].id, scope)
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._ask(tree, steps, number, scope))
        return await asyncio.shield(self._asked[key])

    async def _ask(self, tree: RevisionTree, steps: Steps, number: int, scope: str) -> Judgement:
        node = steps[number]
        known = self._journal.finished.get((tree.name, node.id, scope))
        if known is None:
            seed = judge_seed(self._rules.seed, tree.name, node.id, scope)
            known = {
                "end": "judged",
                "tree": tree.name,
                "task_id": tree.task_id,
                "node": node.id,
                "pair": scope,
                "seed": seed,
                **await self._answer(tree, steps, number, seed),
            }
            self._journal.append(known)
        return Judgement(known["verdict"], known)

    async def _answer(
        self, tree: RevisionTree, steps: Steps, number: int, seed: int
    ) -> dict[str, Any]:
        """The answer to one question; the oldest steps are left out of one that is too long."""
        parse = strict_verdict if self._rules.parser == "strict" else published_verdict
        oldest = 0
        while True:
            asked = question(tree, steps, number, self._rules.instruction, oldest)
            try:
                reply = await self._reply(asked, seed, tree.name)
            except ContextOverflowError:
                before = len(tree.given) + number
                if oldest < before:
                    oldest += max(1, (before - oldest) // 4)
                    continue
                reply = Reply("", "overflow", 0, 0)
            return {
                "verdict": parse(reply.text),
                "answer": reply.text,
                "stop": reply.stop,
                "left_out": oldest,
                "tokens": [reply.prompt_tokens, reply.completion_tokens],
            }

    async def _reply(self, asked: str, seed: int, affinity: str) -> Reply:
        messages = [{"role": "user", "content": asked}]
        return await with_retries(
            lambda: self._policy.reply(messages, seed, affinity), self._lost, affinity
        )


def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel what runs. The failure of a task that nobody waits for any more is no news: the one
    that ended the stage is reported."""
    for task in tasks:
        if not task.done():
            task.cancel()
        elif not task.cancelled():
            task.exception()


def question(
    tree: RevisionTree, steps: Steps, number: int, instruction: str | None = None, oldest: int = 0
) -> str:
    """The question about action `number` (from 0) of a path, without the first `oldest` steps of
    what came before it, turns before the tree's root included."""
    log = [_step_text(step) for step in (*tree.given, *steps[:number])][oldest:]
    if oldest:
        log.insert(0, f"({oldest} earlier steps are left out)")
    parts = (
        OPENING if instruction is None else instruction,
        f"Task:\n{tree.opening[-1]['content']}",
        "Log:\n" + ("\n".join(log) or "(the current step is the first)"),
        f"Current step:\n{_step_text(steps[number])}",
        CLOSING,
    )
    return "\n\n".join(parts)


def judge_seed(seed: int, tree: str, node: int, scope: str) -> int:
    """The sampling seed of one question: 31 bits, since some servers keep no more."""
    text = f"judge/1/{seed}/{node}/{scope}/{tree}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def _step_text(node: ReplyNode) -> str:
    # A reply without an action was answered too: what it said stands for the action.
    return f"Action: {node.action or node.reply}\nObservation: {node.observation}"
