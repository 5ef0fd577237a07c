"""Rules about models: the chat format that a model was trained with."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Subject

_FAMILIES = (
    # The more telling word first: a name may hold several.
    ("vicuna", "vicuna"),
    ("llama-3", "tokenizer"),
    ("llama3", "tokenizer"),
    ("llama-2", "llama-2"),
    ("llama2", "llama-2"),
    ("mistral", "mistral"),
    ("qwen", "chatml"),
)
"""Words in the names of published models, and the format that those were trained with."""


def format_of_family(subject: Subject) -> Iterator[Finding]:
    """`chat_format` is the one that a model of such a name was trained with."""
    if subject.stage.backend == "model.scratch":
        return  # a new model takes any format
    name = subject.settings.text("repo") or subject.settings.text("path") or ""
    written = subject.settings.text("chat_format")
    found = next(((w, f) for w, f in _FAMILIES if w in name.lower()), None)
    if found is None or written in (None, "tokenizer", found[1]):
        return
    own = f"`{found[1]}`" if found[1] != "tokenizer" else "one that only its tokenizer knows"
    yield Finding(
        message=f"`{name}` was probably trained with another chat format than `{written}`",
        path="chat_format",
        notes=(f"`{found[0]}` in its name speaks for {own}",),
        fix=f"set chat_format: {found[1]}, or tokenizer for the template that the model ships",
    )


MODELS: tuple[Rule, ...] = (
    Rule(code="AGC654", kinds=("model",), check=format_of_family, severity="warning"),
)
