"""The date that a model's own chat template is told: always the same one.

Templates may ask for today's (`strftime_now`, as those of Llama 3.2 and 3.3 do), so that a prompt
would change overnight, and a policy be served another one than it was trained on. Used by
tokens.py and by servers; standard library only.
"""

from __future__ import annotations

import re
from datetime import datetime

from agentc_backends.data.chat.formats import FormatError

TEMPLATE_DATE = datetime(2024, 7, 26)
"""What the templates of Llama 3.1 to 3.3 write themselves where there is no clock. Another date
would be another prompt: who changes it raises the versions of trainers and servers."""

_HARMLESS = re.compile(r"\bstrftime_now\s+is\s+(?:not\s+)?defined\b|\{#.*?#\}", re.DOTALL)
_CONSTANT = re.compile(
    r"\bstrftime_now\s*\(\s*(?:format\s*=\s*)?(?:\"([^\"\\]*)\"|'([^'\\]*)')\s*,?\s*\)"
)


def with_fixed_date(template: str) -> str:
    """The template with the date in the place of each question for it. Raises FormatError where
    the question is not a constant."""
    if "strftime_now" not in template:
        return template
    fixed = _CONSTANT.sub(lambda found: repr(_written(found[1] or found[2] or "")), template)
    if "strftime_now" in _HARMLESS.sub("", fixed):
        raise FormatError(
            "the model's chat template asks for the date (strftime_now) in a form that is no "
            "constant; no fixed one can be put there, so that prompts would change with the day: "
            "choose a built-in chat_format on the model stage, or write a constant into the "
            "template"
        )
    return fixed


def _written(form: str) -> str:
    return TEMPLATE_DATE.strftime(form)
