"""The scripted human: tells the one fact that a question is about, else says that it does not know.

Facts come with a task, or are derived from its reference (`derived.py`). Equal questions get equal
answers, whatever was said before.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from agentc_backends.environments.colbench.humans.derived import derived_facts
from agentc_backends.environments.colbench.tasks import CodeTask, HumanFact

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
