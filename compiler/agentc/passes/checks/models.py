"""Rules about models: the chat format that a model was trained with, and its own config.json."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext

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


def format_of_family(subject: StageContext) -> Iterator[Finding]:
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


def config_is_read(subject: StageContext) -> Iterator[Finding]:
    """The config.json of a model directory is one that can be read."""
    folder = subject.folders.get(subject.stage.id)
    if folder is None or not folder.trouble:
        return
    yield Finding(
        message=f"the model's config.json cannot be understood: {folder.trouble}",
        path="path",
        fix="save the model again with `save_pretrained`, or give the directory that was meant",
    )


MODELS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC654",
            "another chat format than the model's",
            "A model trained with one format reads another as unfamiliar text: it answers worse, "
            "and nothing fails. The name of the model speaks for another format than the spec "
            "gives.",
        ),
        kinds=("model",),
        check=format_of_family,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC662",
            "a model's config.json that cannot be read",
            "A model directory tells by its config.json which model it holds and how large it is. "
            "This one is no JSON, or a size in it is missing or is none, so that the job would end "
            "when it loads the model.",
        ),
        kinds=("model",),
        check=config_is_read,
    ),
)
