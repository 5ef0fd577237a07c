"""Rules about models that read plain text (`chat_format: plain`): what it has no way to say."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Prompt
from agentc.kinds.groups import kinds_where
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext
from agentc.passes.checks.surroundings import collected_by

_PLAIN = "plain"
_READERS = kinds_where(
    lambda kind: kind.trains or "prompt" in kind.uses or kind.role("data") is not None
)


def said_in_plain_text(subject: StageContext) -> Iterator[Finding]:
    """Prompts of a model of plain text have no system text, and replies of one line.

    So have those of stages without a model, such as an expert's, whose episodes it learns from,
    through mixtures and pairs too."""
    model = subject.model()
    if model is None or model.text("chat_format") != _PLAIN:
        return
    own, roots = subject.prompt(), subject.around.roots
    if own is not None:
        yield from _unsayable(own, model.name, "prompt")
    for role, names in subject.stage.inputs.items():
        for number, name in enumerate(names):
            # Those that descend from a model are looked at by themselves.
            sources = collected_by([name], subject.module)
            prompts = (subject.prompt(each) for each in sources if each.id not in roots)
            for prompt in {each.name: each for each in prompts if each is not None}.values():
                if prompt is not own:
                    yield from _unsayable(prompt, model.name, f"{role}.{number}")


def _unsayable(prompt: Prompt, model: str, path: str) -> Iterator[Finding]:
    """The first thing of a prompt that plain text cannot say."""
    if prompt.system is not None:
        what = "has an instruction of `role: system`, and plain text has no roles"
        fix = "write `role: user`: the instruction then stands before the task"
    elif prompt.reply_format == "tools":
        what = "lets the agent call a function, which takes lines, and plain text has no roles to "
        what += "show one in"
        fix = "set reply_format to react_inline, action_only or text"
    elif prompt.reply_format == "react":
        what = "asks for replies of two lines, and in plain text the first line end ends a reply"
        fix = "set reply_format to react_inline, action_only or text"
    elif prompt.output_marker is not None:
        what = "lets thoughts stand on lines of their own before `output_marker`, and in plain "
        what += "text the first line end ends a reply"
        fix = "leave output_marker out"
    elif any("\n" in reply for reply in _replies(prompt)):
        what = "shows a reply of several lines, and in plain text a reply is one line"
        fix = "write that reply on one line"
    else:
        return
    yield Finding(
        message=f"prompt `{prompt.name}` {what} (`chat_format: plain` of `{model}`)",
        path=path,
        fix=f"{fix}; or give `{model}` a chat_format with roles, such as chatml",
    )


def _replies(prompt: Prompt) -> Iterator[str]:
    if prompt.acknowledgement is not None:
        yield prompt.acknowledgement
    for example in prompt.examples:
        yield from (text for role, text in example if role == "assistant")


PLAIN_TEXT: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC616",
            "what plain text cannot say",
            "Under `chat_format: plain` texts stand one behind the other without marks of who "
            "said them, and the end of its line ends a reply. That has no place for a system "
            "text, and none for a second line of a reply: rows that hold one would end the job.",
        ),
        kinds=_READERS,
        check=said_in_plain_text,
    ),
)
