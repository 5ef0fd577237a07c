"""Rules about servers that say the best of several candidates (`rerank`), by the critic of the run
of online RL that they serve.

Neighbours: `leased_models.py`, on what a stage's servers load; `choices.py`, about the critics of
rollouts, which are models of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.backend_api import StageBackend
from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds import kind_named
from agentc.kinds.artifacts import POLICY_RUN
from agentc.kinds.groups import kinds_where
from agentc.passes.checks.leased_models import POLICY, LeasedModelServer, leased_servers
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext, place

_LEASING = kinds_where(lambda kind: "server" in kind.uses or "environment" in kind.uses)
_CRITIC = "utterance_critic"
"""The capability of backends whose runs have a critic of utterances."""


def reranked_by_a_critic(subject: StageContext) -> Iterator[Finding]:
    """A server that reranks serves runs of online RL, with their critics."""
    for server in _reranking(subject):
        for role in server.models:
            for source in _sources(subject, role):
                lacking = _lacking(subject, source)
                if lacking is not None:
                    yield Finding(
                        message=f"{server.who} ranks candidates by the critic of what it serves, "
                        f"and `{source.id}` {lacking[0]}",
                        path=role,
                        notes=(f"`rerank` ({place(server.settings.entry, 'rerank')})",),
                        fix=f"{lacking[1]}, or name a server without `rerank` here",
                    )


def reranked_replies_differ(subject: StageContext) -> Iterator[Finding]:
    """Candidates of a server that reranks are drawn, not each the likeliest reply."""
    for server in _reranking(subject):
        if server.role == POLICY and subject.settings.number("decode.temperature") == 0:
            yield Finding(
                message=f"at temperature 0 all candidates of {server.who} are the same reply, and "
                "the critic has no say",
                path="decode.temperature",
                notes=(
                    subject.settings.shown("decode.temperature"),
                    f"`rerank` ({place(server.settings.entry, 'rerank')})",
                ),
                fix="set it to what the run was played with, or name a server without `rerank`",
            )


def reranked_as_learnt(subject: StageContext) -> Iterator[Finding]:
    """A critic that reranks reads what it learnt to read: states under the run's own prompt."""
    own = subject.stage.uses.get("prompt")
    for server in _reranking(subject):
        for source in _sources(subject, POLICY) if server.role == POLICY else ():
            theirs = source.uses.get("prompt")
            if _lacking(subject, source) is None and own != theirs:
                yield Finding(
                    message=f"the critic of `{source.id}` reads the tokens of a conversation, and "
                    f"has learnt to under {_named(theirs)}; `{subject.stage.id}` has {_named(own)}",
                    path="prompt",
                    fix=f"use {_named(theirs)} here" if theirs else "leave `prompt` out",
                )


def _reranking(subject: StageContext) -> Iterator[LeasedModelServer]:
    for server in leased_servers(subject):
        if server.settings.get("rerank") is not None:
            yield server


def _sources(subject: StageContext, role: str) -> Iterator[Stage]:
    for name in subject.stage.inputs.get(role, ()):
        source = subject.module.stages.get(name)
        if source is not None:
            yield source


def _lacking(subject: StageContext, source: Stage) -> tuple[str, str] | None:
    """Why there is no critic in what a stage makes, and what would help."""
    kind = kind_named(source.kind)
    if kind is None or kind.produces is not POLICY_RUN:
        made = "a model" if kind is None else f"a {kind.produces.name}"
        return f"is {made}, which has none", "serve a run of online RL"
    backend = subject.table.backends.get(source.backend)
    if isinstance(backend, StageBackend) and _CRITIC not in backend.capabilities:
        return f"learns none ({source.backend})", "serve a run of `archer` or `chai`"
    if subject.of_stages[source.id].get("publish_state") is False:
        return "does not publish its own", f"set `publish_state: true` in `{source.id}`"
    return None


def _named(prompt: str | None) -> str:
    return "no prompt" if prompt is None else f"the prompt `{prompt}`"


_CODE = Code(
    "AGC619",
    "candidates that no critic can rank",
    "A server with `rerank` draws several candidates for each reply and says the one that "
    "the critic of a run of online RL thinks best, as the run's own job does (CHAI). It "
    "reads that critic out of the run that it serves: other models have none, and neither "
    "do policies that were picked out of a run, runs of algorithms without a critic, and "
    "those that do not publish their state. At temperature 0 all candidates are the same.",
)
RERANKING: tuple[Rule, ...] = (
    Rule(code=_CODE, kinds=_LEASING, check=reranked_by_a_critic),
    Rule(code=_CODE, kinds=_LEASING, check=reranked_replies_differ),
    Rule(code=_CODE, kinds=_LEASING, check=reranked_as_learnt, severity="warning"),
)
