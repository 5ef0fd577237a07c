"""Rules about prompts that show the last observation alone (`memory: last`)."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds.groups import kinds_where
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext

_PROMPTED = kinds_where(lambda kind: "prompt" in kind.uses)
_WHOLE = kinds_where(
    lambda kind: bool(kind.reworks) or ("prompt" in kind.uses and kind.forecast == "trees")
)
"""Kinds that take a conversation for what its policy saw."""


def shown_behind_an_instruction(subject: StageContext) -> Iterator[Finding]:
    """The instruction has a message of its own, which every turn can be shown behind."""
    prompt = subject.prompt()
    if prompt is None or prompt.memory == "all" or not prompt.instruction:
        return
    if prompt.acknowledgement is None:
        yield Finding(
            message=f"prompt `{prompt.name}` shows the last observation alone, and its instruction "
            "stands in the message of the first one",
            path="prompt",
            fix="give the prompt an `acknowledgement` such as `OK`, or `role: system`",
        )


def reworked_whole(subject: StageContext) -> Iterator[Finding]:
    """What is made of conversations takes them for what the policy saw."""
    own = subject.prompt()
    if own is not None and own.memory == "last":
        yield _finding(subject, own.name, "prompt")
        return
    for role, names in subject.stage.inputs.items():
        for number, name in enumerate(names):
            source = subject.module.stages.get(name)
            prompt = None if source is None else _prompt_of(subject, source)
            if prompt is not None:
                yield _finding(subject, prompt, f"{role}.{number}")
                return


def _prompt_of(subject: StageContext, source: Stage) -> str | None:
    """The name of the prompt under which a source was played, where its memory is the last."""
    prompt = subject.prompt(source)
    return prompt.name if prompt is not None and prompt.memory == "last" else None


def _finding(subject: StageContext, prompt: str, path: str) -> Finding:
    return Finding(
        message=f"`{subject.stage.id}` takes whole conversations for what their policy saw, and "
        f"prompt `{prompt}` showed it the last observation alone",
        path=path,
        notes=(
            "stages of kind sft, rollout, evaluate, online_rl and offline_rl know of "
            "`memory: last`",
        ),
        fix="write `memory: all` in the prompt, or leave this stage out",
    )


_CODE = Code(
    "AGC610",
    "a memory of the last observation where the whole is meant",
    "Under `memory: last` each reply stands behind the instruction and one observation. That "
    "needs an instruction with a message of its own, and suits stages that know of it: pairs, "
    "candidates, mixtures and search trees are made of whole conversations, and training on them "
    "would put each reply behind what its policy never saw.",
)
SHOWN_LAST: tuple[Rule, ...] = (
    Rule(code=_CODE, kinds=_PROMPTED, check=shown_behind_an_instruction),
    Rule(code=_CODE, kinds=_WHOLE, check=reworked_whole),
)
