"""Rules about critics: the rows and hidden texts that they learn from, and replies that they
choose, best-of-N of one model or the best of a server's candidates (`rerank`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentc.backend_api import StageBackend
from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds import kind_named
from agentc.kinds.artifacts import CRITIC_CHECKPOINT, POLICY_RUN, PRIVILEGED_INFORMATION
from agentc.kinds.table import ACTING, kinds_where
from agentc.passes.checks.lengths import served_window
from agentc.passes.checks.model_servers import ACTOR, POLICY, LeasedModelServer, leased_servers
from agentc.passes.checks.module_analysis import collected_by
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, StageContext, place
from agentc.passes.checks.turns import (
    HIDDEN_OF_OTHERS,
    RANKED_OTHERWISE,
    critics_of,
    tasks_without_hidden_text,
)
from agentc.text import counted

_TOLD = kinds_where(lambda kind: kind.trains and kind.reads(PRIVILEGED_INFORMATION))


def hidden_texts_of_the_tasks(subject: StageContext) -> Iterator[Finding]:
    """The episodes behind a critic's data are of tasks whose hidden texts it is given."""
    episodes = collected_by(subject.stage.inputs.get("data", ()), subject.module)
    yield from tasks_without_hidden_text(subject, episodes, "which the critic learns from, ")


def rows_hold_an_episode(subject: StageContext) -> Iterator[Finding]:
    """A critic's rows (`max_length`) hold the longest episode that they may be of."""
    length = subject.settings.integer("max_length")
    for episodes in collected_by(subject.stage.inputs.get("data", ()), subject.module):
        settings, environment = subject.of_stages[episodes.id], subject.environment(episodes)
        reply = settings.integer("decode.max_tokens")
        turns = settings.integer("max_turns") or (environment and environment.max_turns)
        if episodes.kind not in ACTING or length is None or reply is None or not turns:
            continue
        window = served_window(replace(subject, stage=episodes, settings=settings))
        if length >= (turns * reply if window is None else min(turns * reply, window[0])):
            continue
        told = " and the hidden text" if subject.stage.inputs.get("privileged") else ""
        happens = {
            "error": "fails the stage",
            "drop": "leaves such a row out",
            "right": "cuts such a row, last turns first",
        }[subject.settings.text("truncation") or "error"]
        yield Finding(
            message=f"an episode of `{episodes.id}` may have {turns * reply} tokens of replies, "
            f"but a row of the critic holds {length}",
            path="max_length",
            notes=(
                f"{counted(turns, 'turn')} x {counted(reply, 'token')}; what the agent reads"
                f"{told} come{'' if told else 's'} on top",
                f"`truncation: {subject.settings.text('truncation')}` {happens}",
            ),
            fix=f"raise max_length, or lower decode.max_tokens of `{episodes.id}`",
        )
        return


CRITICS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC689",
            "hidden texts of other tasks",
            "A critic reads the hidden text of each task that its pairs are of. Where the "
            "`privileged` stage collected them on another split, or on fewer tasks, there is none.",
        ),
        kinds=_TOLD,
        check=hidden_texts_of_the_tasks,
    ),
    Rule(
        code=Code(
            "AGC669",
            "episodes longer than a critic's row",
            "A critic learns from whole episodes, behind the hidden text of their task. Of an "
            "episode that is longer than `max_length` the turns beyond it are lost, or the pair "
            "is; `truncation` says which, and the artifact counts them.",
        ),
        kinds=_TOLD,
        check=rows_hold_an_episode,
        severity="warning",
    ),
)


# Rules about best-of-N at test time: a rollout, or an evaluation, that draws several candidates for
# each turn and continues with the one that a critic prefers.

_CHOOSING = kinds_where(lambda kind: kind.acts and kind.reads(CRITIC_CHECKPOINT))


def candidates_need_critic(subject: StageContext) -> Iterator[Finding]:
    """Of several candidates a critic chooses, beside its reference."""
    inputs, count = subject.stage.inputs, subject.settings.integer("candidates")
    if count is None or count == 1:
        return
    if not inputs.get("critic"):
        yield Finding(
            message=f"of {count} candidates for each turn nobody chooses one",
            path="candidates",
            fix="name the `critic` that does, and its `reference`; for episodes apart set "
            "`attempts`",
        )
    elif not inputs.get("reference") and not any(_heads(subject)):
        against = [
            name
            for critic in critics_of(subject)
            for name in critic.inputs.get("reference") or critic.inputs.get("model", ())
        ]
        yield Finding(
            message="the critic's log-probabilities are compared with a reference's, and "
            f"`{subject.stage.id}` names none",
            path="critic",
            fix=f"set `reference: {against[0]}`" if against else "name its `reference`",
        )


def chosen_by_log_ratio(subject: StageContext) -> Iterator[Finding]:
    """Who chooses among candidates is a language model, which a server can be asked about."""
    if (subject.settings.integer("candidates") or 1) == 1:
        return
    for settings in _heads(subject):
        yield Finding(
            message=f"`{settings.name}` is a head on a model, which no model server holds: it "
            "cannot choose while episodes are played",
            path="critic",
            notes=(settings.note("parameterisation"),),
            fix=f"train a critic with `parameterisation: log_ratio`, or rank with "
            f"`{settings.name}` what was drawn (`sample`, `rank`)",
        )


def hidden_of_tasks_played(subject: StageContext) -> Iterator[Finding]:
    """The hidden texts are of the tasks that are played."""
    yield from tasks_without_hidden_text(subject, [subject.stage])


def _heads(subject: StageContext) -> list[Settings]:
    """The critics that are heads."""
    found = [subject.of_stages[critic.id] for critic in critics_of(subject)]
    return [each for each in found if each.text("parameterisation") == "value_head"]


CHOICES: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC668",
            "candidates that nobody chooses from",
            "A rollout or an evaluation with `candidates` above 1 draws N replies at each "
            "turn and continues with the one that its `critic` thinks best, by what the critic has "
            "learned beyond its `reference`. Both have to be named.",
        ),
        kinds=_CHOOSING,
        check=candidates_need_critic,
    ),
    Rule(code=RANKED_OTHERWISE, kinds=_CHOOSING, check=chosen_by_log_ratio),
    Rule(code=HIDDEN_OF_OTHERS, kinds=_CHOOSING, check=hidden_of_tasks_played),
)


# Rules about servers that say the best of several candidates (`rerank`), by the critic of the run
# of online RL that they serve.

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
                    subject.settings.note("decode.temperature"),
                    f"`rerank` ({place(server.settings.entry, 'rerank')})",
                ),
                fix="set it to what the run was played with, or name a server without `rerank`",
            )


def reranked_as_learnt(subject: StageContext) -> Iterator[Finding]:
    """A critic that reranks reads what it learnt to read: states under the run's own prompt."""
    own = subject.stage.uses.get("prompt")
    for server in _reranking(subject):
        for source in _sources(subject, ACTOR) if server.role == POLICY else ():
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
