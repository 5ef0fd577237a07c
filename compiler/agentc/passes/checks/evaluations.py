"""Rules about what a number in the results table means: tasks, thresholds, protocols, prompts."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.suggest import listed
from agentc.ir.module import Stage
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, Subject, place, quoted, settings_of
from agentc.passes.checks.surroundings import collected_by, split_of

_TRAINERS = ("sft", "dpo")
_HELD_OUT = ("test", "validation", "valid", "dev", "eval", "held_out", "heldout")
_PROTOCOL = (
    "limit",
    "attempts",
    "decode.temperature",
    "decode.top_p",
    "decode.max_tokens",
    "decode.stop",
    "max_turns",
    "on_invalid",
    "on_overflow",
    "action_span",
    "action_space",
    "no_action",
    "invalid_message",
    "invalid_reward",
    "success_at",
    "prompt_seed",
)
"""Settings that change what an evaluation measures, as long as its policy is the same."""


def evaluated_unseen(subject: Subject) -> Iterator[Finding]:
    """A policy is not evaluated on the split whose trajectories it was trained on."""
    stage, split = subject.stage, split_of(subject.stage)
    tasks = (stage.uses.get("environment", ""), str(split))
    trained = subject.around.trained_on.get(stage.id, {})
    source = trained.get(tasks)
    if source is None:
        return
    environment = subject.environment()
    others = [name for name in environment.splits if name != split] if environment else []
    unseen = [name for name in others if (tasks[0], name) not in trained]
    yield Finding(
        message=f"the policy was trained on the split it is evaluated on (`{source}` used it)",
        path="split",
        notes=_written(subject, source),
        fix=f"evaluate on {' or '.join(f'`{name}`' for name in unseen)}" if unseen else None,
    )


def held_out_untouched(subject: Subject) -> Iterator[Finding]:
    """No trainer reads trajectories of a split that is there to be held out."""
    for data in collected_by(subject.stage.inputs.get("data", ()), subject.module):
        split = split_of(data)
        environment = subject.environment(data)
        if not isinstance(split, str) or split not in _HELD_OUT or environment is None:
            continue
        fix = "train on the split `train`" if "train" in environment.splits else None
        yield Finding(
            message=f"`{subject.stage.id}` trains on the split `{split}`",
            path="data",
            notes=(
                f"`{data.id}` takes its tasks from there ({place(data, 'split')})",
                "a later number on these tasks would say how well the policy remembers them",
            ),
            fix=fix,
        )


def success_possible(subject: Subject) -> Iterator[Finding]:
    """`success_at` lies within the environment's rewards, so that episodes can differ."""
    environment, wanted = subject.environment(), subject.settings.number("success_at")
    if environment is None or wanted is None:
        return
    low, high = environment.reward_range
    if low < wanted <= high:
        return
    always = wanted <= low
    yield Finding(
        message=f"with success_at {wanted:g}, "
        + ("every episode is a success" if always else "no episode can be a success"),
        path="success_at",
        notes=(f"rewards of {environment.id} run from {low:g} to {high:g}",),
        fix=f"set success_at to {environment.success_at:g}, or leave it out for the environment's "
        "own rule",
    )


def something_to_compare(subject: Subject) -> Iterator[Finding]:
    """A comparison has two evaluations at least."""
    names = {*subject.stage.inputs.get("of", ()), *subject.stage.inputs.get("baseline", ())}
    if len(names) > 1 or not names:
        return
    yield Finding(
        message=f"`{subject.stage.id}` compares `{next(iter(names))}` with nothing",
        path="of",
        fix="name another evaluation under `of:` or `baseline:`",
    )


def same_tasks(subject: Subject) -> Iterator[Finding]:
    """Evaluations that are compared share their tasks, so that differences can be paired."""
    seen: dict[tuple[str | None, str], str] = {}
    for evaluation in _compared(subject):
        tasks = (evaluation.uses.get("environment"), str(split_of(evaluation)))
        seen.setdefault(tasks, evaluation.id)
    if len(seen) > 1:
        yield Finding(
            message="these evaluations are of different tasks, so their differences are not paired",
            path="of",
            notes=tuple(f"`{name}`: split {split} of {env}" for (env, split), name in seen.items()),
        )


def same_protocol(subject: Subject) -> Iterator[Finding]:
    """Evaluations of different policies that are compared have the same protocol."""
    compared = [settings_of(each, subject.table) for each in _compared(subject)]
    baseline = subject.stage.inputs.get("baseline", ())
    if not compared:
        return
    lead = next((each for each in compared if each.name in baseline), compared[0])
    for other in compared:
        if _tasks(other) != _tasks(lead) or _policy(other) == _policy(lead):
            continue  # of one policy, the protocol is what is compared
        notes = [
            f"`{path}` is {quoted(lead.get(path))} in `{lead.name}` and "
            f"{quoted(other.get(path))} in `{other.name}`"
            for path in _PROTOCOL
            if lead.get(path) != other.get(path)
        ]
        ours, theirs = (_stage(each).uses.get("prompt") for each in (lead, other))
        if ours != theirs:
            notes.append(
                f"the prompt is `{ours}` in `{lead.name}` and `{theirs}` in `{other.name}`"
            )
        if not notes or _crossed(lead, other, compared):
            continue
        yield Finding(
            message=f"`{lead.name}` and `{other.name}` differ in more than their policies, so a "
            "difference between them may come from that",
            path="of",
            notes=tuple(notes),
            fix="give them the same settings (under `defaults:`), or compare them in tables of "
            "their own",
        )


def _crossed(lead: Settings, other: Settings, compared: list[Settings]) -> bool:
    """Whether the table also holds one of the two policies under the other's protocol."""
    wanted = {(_policy(lead), _protocol(other)), (_policy(other), _protocol(lead))}
    return any((_policy(each), _protocol(each)) in wanted for each in compared)


def _protocol(evaluation: Settings) -> tuple[str, ...]:
    return (
        _stage(evaluation).uses.get("prompt", ""),
        *(quoted(evaluation.get(p)) for p in _PROTOCOL),
    )


def _policy(evaluation: Settings) -> tuple[str, ...]:
    return _stage(evaluation).inputs.get("policy", ())


def _tasks(evaluation: Settings) -> tuple[str, str]:
    stage = _stage(evaluation)
    return stage.uses.get("environment", ""), str(split_of(stage))


def _stage(evaluation: Settings) -> Stage:
    assert isinstance(evaluation.entry, Stage)
    return evaluation.entry


def same_prompt_as_training(subject: Subject) -> Iterator[Finding]:
    """A policy acts under a prompt that it was trained under."""
    prompt = subject.stage.uses.get("prompt", "")
    policies = subject.stage.inputs.get("policy", ())
    seen = subject.around.prompts.get(policies[0], frozenset()) if policies else frozenset()
    if not seen or prompt in seen:
        return
    own = f"the prompt `{prompt}`" if prompt else "no prompt"
    trained = listed(sorted(name for name in seen if name)) or "no prompt"
    yield Finding(
        message=f"`{subject.stage.id}` acts under {own}, but its policy was trained under "
        f"{trained}",
        path="prompt",
        notes=("a prompt that training never showed is another task to a small model",),
        fix=f"use the prompt {trained} here, or collect the trajectories under `{prompt}`"
        if prompt
        else None,
    )


def _compared(subject: Subject) -> list[Stage]:
    inputs = subject.stage.inputs
    names = dict.fromkeys([*inputs.get("of", ()), *inputs.get("baseline", ())])
    found = [subject.module.stages.get(name) for name in names]
    return [stage for stage in found if stage is not None and stage.kind == "evaluate"]


def _written(subject: Subject, source: str) -> tuple[str, ...]:
    stage = subject.module.stages.get(source)
    return () if stage is None else (f"`{source}` names it too ({place(stage, 'split')})",)


EVALUATIONS: tuple[Rule, ...] = (
    Rule(code="AGC507", kinds=("evaluate",), check=evaluated_unseen, severity="warning"),
    Rule(code="AGC509", kinds=("compare",), check=same_tasks, severity="warning"),
    Rule(code="AGC634", kinds=_TRAINERS, check=held_out_untouched, severity="warning"),
    Rule(code="AGC635", kinds=("evaluate",), check=success_possible),
    Rule(code="AGC637", kinds=("compare",), check=something_to_compare, severity="warning"),
    Rule(code="AGC638", kinds=("compare",), check=same_protocol, severity="warning"),
    Rule(
        code="AGC639",
        kinds=("evaluate", "rollout", "search"),
        check=same_prompt_as_training,
        severity="warning",
    ),
)
