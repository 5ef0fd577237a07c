"""Reads the verdict out of a judge's answer, strictly or as the released code does."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from agentc_backends.agents.common.markup import without_thinking

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
