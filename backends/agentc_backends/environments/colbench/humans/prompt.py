"""The prompt of a model that plays the human: our own words, or a file's of a spec.

The paper's prompt is under a licence that forbids to ship it. Declarations read this file.
"""

from __future__ import annotations

import re

from agentc_backends.environments.colbench.tasks import CodeTask

PLACES = ("description", "reference", "dialogue")
"""What a prompt has to show, as `{description}`; other braces stand for themselves."""
_RELEASED = {
    "problem_description": "description",
    "hidden_information": "reference",
    "dialogue_history": "dialogue",
}
"""The same places as a prompt of the released code names them."""
_PLACE = re.compile(rf"\{{({'|'.join((*PLACES, *_RELEASED))})\}}")
PROMPT = """\
You play somebody who needs a Python function and works with a programmer on it.

What you have asked for:
{description}

What you really want is this function. The programmer cannot see it:
{reference}

Answer the programmer's last question by what this function does. Where it says nothing about what \
is asked, say that you do not know. Never write code, and do not repeat the function. Say one or \
two short sentences and nothing else.

What was said so far:
{dialogue}

Your next reply:
"""
SYSTEM = "You are a person who talks with a programmer."
NO_CODE = "Your last try held code of the function. Say it in words, without any code."


def lacking_places(prompt: str) -> list[str]:
    """What a prompt does not show of a task."""
    shown = {_RELEASED.get(name, name) for name in _PLACE.findall(prompt)}
    return [place for place in PLACES if place not in shown]


def filled(prompt: str, task: CodeTask, dialogue: str) -> str:
    """In one pass: a description or a reply may hold such words itself."""
    values = {
        "description": task.description,
        "reference": task.reference,
        "dialogue": dialogue,
    }
    return _PLACE.sub(lambda found: values[_RELEASED.get(found[1], found[1])], prompt)
