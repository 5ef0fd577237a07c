"""Rules about the rows of an optimiser step: how they divide, and whether there are enough."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds.artifacts import PREFERENCE_PAIRS, TRAJECTORIES
from agentc.kinds.interaction import PREFIXES
from agentc.kinds.table import PAIR_TRAINERS, TRAINERS, makers
from agentc.passes.checks.rule import Finding, Rule, divisors_near, either, multiples_near
from agentc.passes.checks.subject import Settings, StageContext
from agentc.text import counted


def batch_divides(subject: StageContext) -> Iterator[Finding]:
    """`global_batch` is `processes` x `micro_batch` x a whole number of accumulation steps."""
    settings = subject.settings
    whole, processes = settings.integer("global_batch"), settings.integer("processes")
    micro = settings.integer("micro_batch")
    if not whole or not processes:
        return
    share = whole / processes
    if whole % processes:
        path, step, shares = "processes", processes, f"{processes} processes"
        arithmetic = f"{whole} / {processes} processes = {counted(share, 'row')} for each"
        other = either(divisors_near(whole, processes))
    elif micro and whole // processes % micro:
        path, step = "micro_batch", processes * micro
        shares = f"{processes} x micro_batch {micro}"
        arithmetic = (
            f"{whole} / ({processes} processes x micro_batch {micro}) = {whole / step:g} "
            "accumulation steps"
        )
        other = either(divisors_near(whole // processes, micro))
    else:
        return
    yield Finding(
        message=f"a global_batch of {whole} cannot be made of {shares}",
        path=path,
        expected="global_batch = processes x micro_batch x a whole number of accumulation steps",
        notes=(arithmetic, settings.note("global_batch")),
        fix=f"set global_batch to {either(multiples_near(whole, step))}, or {path} to {other}",
    )


def enough_rows(subject: StageContext) -> Iterator[Finding]:
    """The data can fill one `global_batch`, as far as `limit` and `attempts` say."""
    if subject.settings.text("objective") == "binary_cross_entropy":
        return  # its rows are turns, of which nothing says how many an episode has
    whole = subject.settings.integer("global_batch")
    bounds = [_most_rows(data, subject) for data in subject.producers("data")]
    if whole is None or not bounds or any(bound is None for bound in bounds):
        return
    rows = sum(bound[0] for bound in bounds if bound is not None)
    if rows >= whole:
        return
    noun = "pair" if subject.stage.kind in PAIR_TRAINERS else "row"
    sums = [text for bound in bounds if bound is not None for text in bound[1]]
    yield Finding(
        message=f"`{subject.stage.id}` gets {counted(rows, noun)} at most, fewer than one "
        f"global_batch of {whole}",
        path="global_batch",
        notes=(*sums, f"every epoch is then a single step of {counted(rows, noun)} or fewer"),
        fix=f"set global_batch to {rows} or less, or collect more" if rows else None,
    )


def _most_rows(data: Settings, subject: StageContext) -> tuple[int, list[str]] | None:
    """(upper bound, how it comes about) of the rows that a stage can make; None if unknown."""
    stage = data.entry
    assert isinstance(stage, Stage)
    if stage.inputs.get(PREFIXES.name):
        return None
    if stage.kind in makers(TRAJECTORIES):
        limit, attempts = data.integer("limit"), data.integer("attempts") or 1
        if limit is None:
            return None
        rows = counted(limit * attempts, "row")
        return limit * attempts, [f"`{stage.id}`: limit {limit} x attempts {attempts} = {rows}"]
    if stage.kind in makers(PREFERENCE_PAIRS):
        return _most_pairs(data, stage, subject)
    return None


def _most_pairs(
    data: Settings, stage: Stage, subject: StageContext
) -> tuple[int, list[str]] | None:
    found = [subject.module.stages.get(name) for name in stage.inputs.get("rollouts", ())]
    if any(each is not None and each.inputs.get(PREFIXES.name) for each in found):
        return None
    explored = [subject.of_stages[each.id] for each in found if each is not None]
    limits = [each.integer("limit") for each in explored]
    attempts = [each.integer("attempts") or 1 for each in explored]
    tasks = max((limit for limit in limits if limit is not None), default=0)
    if not tasks or None in limits:
        return None
    episodes = sum((limit or 0) * n for limit, n in zip(limits, attempts, strict=True))
    sources = data.text("sources")
    among = tasks * comb(sum(attempts), 2)
    pairs = {"expert": episodes, "self": among}.get(sources or "", episodes + among)
    reason = f"`{stage.id}`: {counted(episodes, 'episode')} of {counted(tasks, 'task')} make "
    reason += f"{counted(pairs, 'pair')} at most"
    most = data.integer("max_per_task")
    if most is not None and tasks * most < pairs:
        pairs = tasks * most
        reason = f"`{stage.id}`: {counted(tasks, 'task')} x max_per_task {most} = "
        reason += counted(pairs, "pair")
    return pairs, [reason]


BATCHES: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC503",
            "a batch that does not divide",
            "An optimiser step is made of equal shares: global_batch must be processes x "
            "micro_batch x a whole number of accumulation steps. Integer division would "
            "silently train with another batch.",
        ),
        kinds=TRAINERS,
        check=batch_divides,
    ),
    Rule(
        code=Code(
            "AGC620",
            "fewer rows than a batch",
            "`limit` and `attempts` say how many rows can reach the trainer at most. With fewer "
            "than global_batch, every step is smaller than asked for, and an epoch is one step.",
        ),
        kinds=TRAINERS,
        check=enough_rows,
        severity="warning",
    ),
)
