"""Rules about calls of functions (`reply_format: tools`): which servers show a model its functions.

Neighbour: `plain_text.py`, on a chat format that has no place for them.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.backend_api import StageBackend
from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Prompt, Stage
from agentc.kinds import kind_named
from agentc.kinds.artifacts import CHECKPOINT, CRITIC_CHECKPOINT
from agentc.kinds.groups import kinds_where
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext

TOOLS = "tools"
"""The reply format, and the capability of servers that show functions in every chat format and
leave calls as they were written."""


def functions_shown(subject: StageContext) -> Iterator[Finding]:
    """A server that is asked for conversations with functions shows them to the model."""
    server = subject.server()
    if server is None or TOOLS in server[0].capabilities or _asks_nobody(subject):
        return
    prompt = _prompt(subject, subject.stage)
    if prompt is None or prompt.reply_format != TOOLS:
        return
    backend, settings = server
    yield Finding(
        message=f"`{settings.name}` ({backend.id}) is not known to show a model its functions, and "
        f"replies of prompt `{prompt.name}` call one (`reply_format: tools`)",
        path="server",
        notes=("a chat template may leave functions out and say nothing of it",),
        fix="name a server of `backend: vllm` or `transformers`, or give the prompt another "
        "reply_format",
    )


def _asks_nobody(subject: StageContext) -> bool:
    backend = subject.table.backends.get(subject.stage.backend)
    return isinstance(backend, StageBackend) and "value_head" in backend.capabilities


def _prompt(subject: StageContext, stage: Stage) -> Prompt | None:
    """The prompt of the conversations that a stage's server is shown: its own, or the one that the
    episodes of its inputs were played under."""
    kind = kind_named(stage.kind)
    if kind is None or "prompt" in kind.uses:
        return subject.prompt(stage)
    for role in kind.roles:
        if any(each in (CHECKPOINT, CRITIC_CHECKPOINT) for each in role.accepts):
            continue
        for name in stage.inputs.get(role.name, ()):
            source = subject.module.stages.get(name)
            found = None if source is None else _prompt(subject, source)
            if found is not None:
                return found
    return None


FUNCTIONS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC785",
            "a server that may not show functions",
            "Under `reply_format: tools` the model is shown a function and calls it. "
            "`serve.vllm` and `serve.transformers` show functions under every chat template and "
            "leave calls as the model wrote them. An external endpoint may leave functions out "
            "without a word, and reads calls by itself, which gives other texts than the model "
            "wrote: the policy would act, and be trained, on other prompts than the spec says.",
        ),
        kinds=kinds_where(lambda kind: "server" in kind.uses),
        check=functions_shown,
    ),
)
