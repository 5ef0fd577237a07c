"""Texts that name something cannot be empty: names, ids, paths, repositories. It follows from their
declarations, so each field of kinds, backends and the language is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentc.backend_api import load_backends
from agentc.diagnostics import Sink
from agentc.diagnostics.diagnostic import Source, Span
from agentc.kinds import KINDS
from agentc.kinds.field import Field, string, strings
from agentc.schema import language
from agentc.schema.coerce import FAILED, Coercion
from agentc.schema.describe import types_of
from agentc.source.tree import Scalar, Sequence

_BLANK = {
    # What is said to a model, which may be nothing.
    *("acknowledgement", "content", "human_labels", "instruction", "invalid_message"),
    *("observation_prefix", "system"),
    # Words of a command, and what stands before routes; of `stop` a rule of its own speaks.
    *("command", "prefix", "stop"),
}
_SPAN = Span(Source("spec.yaml", "x: ''"), 1, 4, 1, 6)


def _fields() -> Iterator[Field]:
    stack: list[Field] = [field for kind in KINDS for field in kind.fields]
    for backend in load_backends():
        stack += [*getattr(backend, "options", ()), *getattr(backend, "fields", ())]
    for name in dir(language):
        if name.endswith("_FIELDS"):
            stack += getattr(language, name)
    while stack:
        field = stack.pop()
        stack += field.fields
        if field.identity != "metadata":
            yield field


def _accepts_empty(field: Field) -> bool:
    """Whether an empty text is taken, or one as an item of a list."""
    node: Scalar | Sequence = Scalar("", True, _SPAN)
    if "array" in types_of(field.schema):
        node = Sequence((node,), _SPAN)
    elif "string" not in types_of(field.schema):
        return False
    return Coercion(Sink()).field(node, field, field.name) is not FAILED


def test_only_words_for_a_model_may_be_empty() -> None:
    loose = {field.name for field in _fields() if field.name != "choices" and _accepts_empty(field)}
    assert loose == _BLANK


@pytest.mark.parametrize("made", [string("id", "A name."), strings("id", "Names.")])
def test_an_empty_name_is_an_error(made: Field) -> None:
    assert not _accepts_empty(made)
    blank = string if "string" in types_of(made.schema) else strings
    assert _accepts_empty(blank("id", "Words.", blank=True))
