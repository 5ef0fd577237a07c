"""What to say of an expression that cannot be parsed. Part of `sandbox.py`."""

from __future__ import annotations

import re

from jinja2 import TemplateSyntaxError

from agentc.source.tree import shortened

_FOREIGN = {
    "^": "a power is written with `**`",
    "&&": "write `and`",
    "||": "write `or`",
    "?": "write `A if CONDITION else B`",
    "\N{MULTIPLICATION SIGN}": "write `*`",
    "\N{DIVISION SIGN}": "write `/`",
    "\N{GREATER-THAN OR EQUAL TO}": "write `>=`",
    "\N{LESS-THAN OR EQUAL TO}": "write `<=`",
    "\N{NOT EQUAL TO}": "write `!=`",
    "{%": "statements are not part of the language; write `A if CONDITION else B`",
}
"""Signs of other languages, and what is written here."""


def syntax_message(error: TemplateSyntaxError) -> str:
    """The message without the words of the engine."""
    text = error.message or "unknown trouble"
    if "Expected an expression, got 'end of print statement'" in text:
        return "the expression is empty, or ends too early"
    for jargon, plain in (
        ("'end of print statement'", "`}}`"),
        ("end of print statement", "`}}`"),
        ("end of template", "end of the text"),
        ("template", "expression"),
    ):
        text = text.replace(jargon, plain)
    return f"the expression cannot be parsed: {shortened(text.rstrip('.'), 120)}"


def syntax_fix(text: str) -> str | None:
    """What is written here for what was written there."""
    if text.count("{{") != text.count("}}"):
        return "close the expression with `}}`"
    inside = " ".join(re.findall(r"\{\{(.*?)\}\}", text, re.DOTALL))
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", inside)
    for sign, remedy in _FOREIGN.items():
        if sign in bare:
            return remedy
    if re.search(r"(?<![=!<>])=(?!=)", bare):
        return "a comparison is written with `==`"
    if not inside.strip():
        return "write the name of a param, or leave the braces out"
    return None
