"""Who answers the agent's questions: a script over a task's facts, or a model. Each knows the
reference; `dialogue.py` checks that a reply does not disclose it."""

from __future__ import annotations

import ast
import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

from agentc_backends.environments.colbench.settings import NO_CODE, PROMPT, SYSTEM, filled
from agentc_backends.environments.colbench.tasks import CodeTask, HumanFact
from agentc_backends.environments.server.model_services import ModelService, reply_text


class Human(Protocol):
    """Called from several threads at a time."""

    def reply(
        self, task: CodeTask, said: Sequence[tuple[str, str]], question: str, *, again: bool = False
    ) -> str:
        """What it says to `question`; `said` are the rounds before: the agent's reply, its own.
        `again`: what it said first held code. Raises EnvironmentFailure."""


# The scripted human's facts come with a task, or are derived from its reference. Equal questions
# get equal answers, whatever was said before.

UNKNOWN = "I do not know."
_COMMON = (
    "a an and are as be by do does for i if in is it of on or that the there this to what when "
    "which with you"
)
_SAY_NOTHING = frozenset(_COMMON.split())


class ScriptedHuman:
    """Answers from facts alone."""

    def reply(
        self, task: CodeTask, said: Sequence[tuple[str, str]], question: str, *, again: bool = False
    ) -> str:
        """To the agent's question; what was said before changes nothing here."""
        del said, again
        asked = words_of(question)
        if task.facts:
            return _named(task.facts, asked)
        return _nearest(_derived(task.reference), asked - _SAY_NOTHING)


def words_of(text: str) -> frozenset[str]:
    """Small letters without accents and digits; names that are several words count as these."""
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    parts = unicodedata.normalize("NFKD", apart).lower()
    return frozenset(re.findall(r"[a-z0-9]+", parts))


def _named(facts: Sequence[HumanFact], asked: frozenset[str]) -> str:
    """The fact whose keys the question names. One about two things at once is about neither."""
    found = {fact.sentence for fact in facts if asked.issuperset(fact.keys)}
    return found.pop() if len(found) == 1 else UNKNOWN


def _nearest(facts: Sequence[HumanFact], asked: frozenset[str]) -> str:
    """The fact with most words of the question, rare ones counting more; of equal ones the
    first."""
    counts = Counter(key for fact in facts for key in fact.keys)
    scores = [sum(1 / counts[key] for key in fact.keys if key in asked) for fact in facts]
    best = max(scores, default=0.0)
    return facts[scores.index(best)].sentence if best > 0 else UNKNOWN


@lru_cache(maxsize=4096)
def _derived(reference: str) -> tuple[HumanFact, ...]:
    return derived_facts(reference)


# Facts derived from a reference: parameters, conditions, constants, results. They serve for trying
# out real tasks, whose rows hold no facts, without a model.

_LONGEST = 160
_RETURN = "return returns result output"
_WORD = re.compile(r"[a-z0-9]+")


def derived_facts(reference: str) -> tuple[HumanFact, ...]:
    """Of each statement that says something, in order; empty where the source is no Python."""
    try:
        tree = ast.parse(reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: dict[str, HumanFact] = {}
    for node in ast.walk(tree):
        for words, sentence in _sentences(node):
            if len(sentence) <= _LONGEST and sentence not in found:
                found[sentence] = HumanFact(_keys(words), sentence)
    return tuple(found.values())


def _sentences(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Key words and a sentence."""
    if isinstance(node, ast.FunctionDef):
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        listed = ", ".join(names)
        yield (
            f"parameters arguments inputs takes {listed}",
            (f"It takes {listed}." if names else "It takes nothing."),
        )
        for position, default in enumerate(reversed(node.args.defaults), 1):
            name, value = names[-position], ast.unparse(default)
            yield f"default {name}", f"The default of {name} is {value}."
        for statement in node.body:
            if isinstance(statement, ast.Return) and statement.value is not None:
                value = ast.unparse(statement.value)
                yield f"{_RETURN} {value}", f"It returns {value}."
    elif isinstance(node, ast.If):
        when = ast.unparse(node.test)
        for branch, condition in ((node.body, f"when {when}"), (node.orelse, f"unless {when}")):
            for result in branch[:1]:
                yield from _in_branch(result, condition)
    elif isinstance(node, ast.IfExp):
        value, other = ast.unparse(node.body), ast.unparse(node.orelse)
        when = ast.unparse(node.test)
        yield f"{value} {when} {other}", f"It takes {value} when {when}, else {other}."
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.BinOp):
        target = ast.unparse(node.targets[0])
        yield f"{target} {ast.unparse(node.value)}", f"{target} is {ast.unparse(node.value)}."
    elif isinstance(node, ast.For):
        each, all_of = ast.unparse(node.target), ast.unparse(node.iter)
        yield f"loop each every {each} {all_of}", f"It goes through {all_of}."


def _in_branch(result: ast.stmt, condition: str) -> Iterator[tuple[str, str]]:
    if isinstance(result, ast.Return):
        value = "nothing" if result.value is None else ast.unparse(result.value)
        yield f"{_RETURN} {condition} {value}", f"It returns {value} {condition}."
    elif isinstance(result, ast.Raise):
        error = "an error" if result.exc is None else ast.unparse(result.exc)
        yield f"error raise invalid {condition}", f"It raises {error} {condition}."
    elif isinstance(result, ast.Assign | ast.AugAssign):
        yield f"{condition} {ast.unparse(result)}", f"{ast.unparse(result)} {condition}."


def _keys(words: str) -> tuple[str, ...]:
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", words).lower()
    return tuple(dict.fromkeys(_WORD.findall(apart)))


_AGENT, _HUMAN = "Programmer", "You"
DialogueForm: TypeAlias = Literal["lines", "published"]


class ModelHuman:
    """Asks a chat model for each reply, as the same person whoever runs beside it: the seed of a
    request, where one is sent, follows from the task and from what was said."""

    def __init__(
        self,
        model: ModelService,
        *,
        temperature: float,
        max_tokens: int,
        prompt: str = PROMPT,
        system: str = SYSTEM,
        dialogue: DialogueForm = "lines",
        seeded: bool = True,
    ) -> None:
        self._model, self._prompt, self._system = model, prompt, system
        self._temperature, self._max_tokens = temperature, max_tokens
        self._dialogue, self._seeded = dialogue, seeded

    def reply(
        self, task: CodeTask, said: Sequence[tuple[str, str]], question: str, *, again: bool = False
    ) -> str:
        form = _published if self._dialogue == "published" else _lines
        text = filled(self._prompt, task, form(task, said, question))
        if again:
            text += f"\n{NO_CODE}\n"
        messages = [{"role": "system", "content": self._system}, {"role": "user", "content": text}]
        told = self._model.chat(
            messages,
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            seed=_seed(task, text) if self._seeded else None,
            affinity=task.id,
        )
        words = reply_text(told)
        return told.text if self._dialogue == "published" else words


def _lines(task: CodeTask, said: Sequence[tuple[str, str]], question: str) -> str:
    del task
    rounds = [f"{_AGENT}: {asked}\n{_HUMAN}: {told}" for asked, told in said]
    return "\n".join([*rounds, f"{_AGENT}: {question}"])


def _published(task: CodeTask, said: Sequence[tuple[str, str]], question: str) -> str:
    """Every message as a block behind its role, the description first; four line ends after each,
    and at the end the role that comes next by its other name."""
    turns = [("user", task.description)]
    for asked, told in said:
        turns += [("assistant", asked), ("user", told)]
    turns.append(("assistant", question))
    return "".join(f"{role}:{content}\n\n\n\n" for role, content in turns) + "agent:"


def _seed(task: CodeTask, text: str) -> int:
    """Of 31 bits, as servers take them."""
    whole = f"{task.id}\0{text}".encode("utf-8", "surrogatepass")
    return int(hashlib.sha256(whole).hexdigest()[:8], 16) >> 1
