"""Rules about servers: how many tokens one takes through its model at once, and which external
server results are of.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Resource
from agentc.kinds.table import LEASING, ON_TASKS
from agentc.passes.checks.model_servers import LeasedModelServer
from agentc.passes.checks.model_shape import ModelContext, model_context
from agentc.passes.checks.parallel import spreading_servers
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext


def prompts_within_a_pass(subject: StageContext) -> Iterator[Finding]:
    """A server that computes prompts whole takes its longest one in one pass."""
    for leased in spreading_servers(subject):
        for role in leased.models:
            yield from _within_a_pass(leased, model_context(subject, role))


def _within_a_pass(leased: LeasedModelServer, model: ModelContext | None) -> Iterator[Finding]:
    server = leased.settings
    window, shown = server.integer("max_model_len"), server.note("max_model_len")
    if window is None and model is not None:
        window, shown = model.tokens, model.shown
    batch = server.integer("max_num_batched_tokens")
    pieces = server.get("enable_chunked_prefill")
    if pieces is None:
        pieces = bool(leased.place.integer("placement.gpus"))
    if pieces or window is None or batch is None or batch >= window:
        return
    yield Finding(
        message=f"max_num_batched_tokens is {batch}, but a prompt of {leased.whose} may have "
        f"up to {window} tokens, and is computed whole",
        path="max_num_batched_tokens",
        at=server.entry,
        notes=(
            shown,
            server.note("enable_chunked_prefill")
            if server.is_set("enable_chunked_prefill")
            else "without GPUs prompts are not computed in pieces",
            "the server would refuse to start",
        ),
        fix=f"set max_num_batched_tokens to {window} or more, or leave it out",
    )


SERVER_BATCHES: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC659",
            "a pass of tokens shorter than a prompt",
            "A server takes `max_num_batched_tokens` tokens through its model at once. Where it "
            "does not compute prompts in pieces, the longest prompt has to fit into one pass.",
        ),
        kinds=LEASING,
        check=prompts_within_a_pass,
    ),
)


# Rules about environments whose server runs elsewhere: results say which server they are of.

_IDENTITIES = ("fingerprint", "release")


def server_is_identified(subject: StageContext) -> Iterator[Finding]:
    """A server at a `url` has a `fingerprint` or a `release` that identifies it."""
    entry = subject.module.environments.get(subject.stage.uses.get("environment", ""))
    declared = subject.environment()
    if entry is None or declared is None or not _is_first(subject, entry):
        return
    fields = {field.name for field in declared.fields}
    if not fields.issuperset({"url", *_IDENTITIES}) or not _is_set(entry, "url"):
        return
    if any(_is_set(entry, name) for name in (*_IDENTITIES, "launch")):
        return  # both of `url` and `launch` are an error of the entry
    yield Finding(
        message=f"nothing identifies the server of `{entry.name}`: results of another server at "
        "any address count as results of this one",
        path="url",
        at=entry,
        notes=("an address enters no key, so that the same server may move",),
        fix="set `fingerprint` (the server's log prints it; another server is refused), or "
        "`release` (what is served, such as a commit)",
    )


def _is_first(subject: StageContext, entry: Resource) -> bool:
    """Whether the stage is the first one in this environment: one report is enough."""
    stages = subject.module.stages.values()
    users = (
        stage.id
        for stage in stages
        if stage.kind in ON_TASKS and stage.uses.get("environment") == entry.name
    )
    return next(users, None) == subject.stage.id


def _is_set(entry: Resource, name: str) -> bool:
    value = entry.fields.get(name)
    return value is not None and value.json is not None


EXTERNAL_SERVERS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC666",
            "an external server that nothing identifies",
            "Keys ignore addresses: the same server may run elsewhere tomorrow. So where a `url` "
            "is all that a spec says of a server, results of another server, with other tasks or "
            "another release, are taken from the store as if they were its own.",
        ),
        kinds=ON_TASKS,
        check=server_is_identified,
        severity="warning",
    ),
)
