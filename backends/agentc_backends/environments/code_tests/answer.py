"""The code in a reply: what stands between fences, else all of it."""

from __future__ import annotations

import re
import textwrap

_BLOCK = re.compile(r"```([^\n`]*)(?:\n|\Z)(.*?)(?:```|\Z)", re.DOTALL)
_PYTHON = re.compile(r"\{?\.?(?:python|py)[0-9.]*(?![^\s,;:{}])", re.IGNORECASE)

# fmt: off
_FORBIDDEN = (
    "import os", "from os", "import sys", "from sys", "sudo", "transformers", "exit(", "quit(",
    "argparse",
)
# fmt: on
"""What the released evaluator looks for in the text of an answer, comments included."""


def forbidden(reply: str, namespace: str) -> bool:
    """Whether a reply scores 0 unseen, for a word in it."""
    return namespace == "published" and any(word in reply for word in _FORBIDDEN)


def code_of(reply: str, namespace: str) -> str:
    """By the rules that belong to a namespace."""
    return _published(reply) if namespace == "published" else _fresh(reply)


def _fresh(reply: str) -> str:
    """The first block of Python, else the first of no language; one that nobody closed goes to the
    end. What follows the language's name, such as a title, is left alone."""
    blocks = [(found[1].strip(), found[2]) for found in _BLOCK.finditer(reply)]
    named = [code for language, code in blocks if _PYTHON.match(language)]
    others = [code for language, code in blocks if not language]
    return textwrap.dedent(next(iter(named + others), reply)).strip()


def _published(reply: str) -> str:
    """As the released evaluator finds it: what follows "```python" up to the next fence, be it more
    of the language's name; of other fences what follows the first, the language's name too."""
    code = reply
    if "```python" in code:
        code = code.split("```python")[1].split("```")[0]
    if "```" in code:
        code = code.split("```")[1]
    return code
