"""Rules about what a number in the results table means: tasks, thresholds, protocols, prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from agentc.backend_api.view import SettingTable
from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.suggest import listed
from agentc.ir.module import Body, Stage
from agentc.kinds.artifacts import METRICS
from agentc.kinds.interaction import PrefixSettings
from agentc.kinds.table import ACTING, MODEL_MAKERS, kinds_where, makers
from agentc.passes.checks.measures import played_by
from agentc.passes.checks.module_analysis import collected_by, split_of
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, StageContext, place, quoted
from agentc.program.settings import declared_in

Tasks: TypeAlias = tuple[str, str, float]

_HELD_OUT = ("test", "validation", "valid", "dev", "eval", "held_out", "heldout")
_PROTOCOL = (
    "limit",
    "attempts",
    "candidates",
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
    *(f"prefix.{each.name}" for each in declared_in(PrefixSettings)),
)
"""Settings that change what an evaluation measures, as long as its policy is the same."""
_LEARNERS = kinds_where(lambda kind: kind.name in MODEL_MAKERS and kind.role("data") is not None)
"""Kinds that make a model of what was recorded."""


def evaluated_unseen(subject: StageContext) -> Iterator[Finding]:
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


def held_out_untouched(subject: StageContext) -> Iterator[Finding]:
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


def success_possible(subject: StageContext) -> Iterator[Finding]:
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


def sample_success_possible(subject: StageContext) -> Iterator[Finding]:
    """`success_at` of an external benchmark lies within its `range` of scores."""
    wanted, bounds = subject.settings.number("success_at"), subject.settings.get("range")
    match bounds:
        case [int() | float() as low, int() | float() as high] if low < high:
            pass
        case _:
            return  # lowering reports it
    if wanted is None or low < wanted <= high:
        return
    always = "every sample is a success" if wanted <= low else "no sample can be a success"
    yield Finding(
        message=f"with success_at {wanted:g}, {always}",
        path="success_at",
        notes=(f"scores run from {low:g} to {high:g} ({subject.settings.note('range')})",),
        fix=f"set success_at above {low:g} and to {high:g} at most, or set `range` to the lowest "
        "and the highest score that a sample can get",
    )


def something_to_compare(subject: StageContext) -> Iterator[Finding]:
    """A comparison has two evaluations at least."""
    names = {*subject.stage.inputs.get("of", ()), *subject.stage.inputs.get("baseline", ())}
    if len(names) > 1 or not names:
        return
    yield Finding(
        message=f"`{subject.stage.id}` compares `{next(iter(names))}` with nothing",
        path="of",
        fix="name another evaluation under `of:` or `baseline:`",
    )


def same_tasks(subject: StageContext) -> Iterator[Finding]:
    """Evaluations that are compared share their tasks, so that differences can be paired."""
    seen: dict[Tasks, Stage] = {}
    for evaluation in _compared(subject):
        seen.setdefault(_tasks(subject, played_by(subject, evaluation)), evaluation)
    if len(seen) > 1:
        yield Finding(
            message="these evaluations are of different tasks, so their differences are not paired",
            path="of",
            notes=tuple(
                f"`{each.id}`: split {split_of(each)} of {each.uses.get('environment')}"
                for each in seen.values()
            ),
        )


def same_protocol(subject: StageContext) -> Iterator[Finding]:
    """Evaluations of different policies that are compared have the same protocol."""
    compared = [subject.of_stages[each.id] for each in _compared(subject)]
    baseline = subject.stage.inputs.get("baseline", ())
    if not compared:
        return
    lead = next((each for each in compared if each.name in baseline), compared[0])
    protocols = _protocols(subject, compared)
    own_tasks = _tasks(subject, _stage(lead))
    made = [(_policy(each), protocols[each.name]) for each in compared]
    for other in compared:
        if _policy(other) == _policy(lead) or _tasks(subject, _stage(other)) != own_tasks:
            continue  # of one policy, the protocol is what is compared
        ours, theirs = protocols[lead.name], protocols[other.name]
        notes = [
            f"{name} is {value} in `{lead.name}` and {theirs[name]} in `{other.name}`"
            for name, value in ours.items()
            # Where one of them alone asks a model, the setting that says so differs as well.
            if value != theirs.get(name, value)
        ]
        # The table may hold one of the two policies under the other's protocol as well.
        if not notes or (_policy(lead), theirs) in made or (_policy(other), ours) in made:
            continue
        yield Finding(
            message=f"`{lead.name}` and `{other.name}` differ in more than their policies, so a "
            "difference between them may come from that",
            path="of",
            notes=tuple(notes),
            fix="give them the same settings (under `defaults:`), or compare them in tables of "
            "their own",
        )


def _protocols(subject: StageContext, compared: list[Settings]) -> dict[str, dict[str, str]]:
    """By name. Evaluations with the same body have one protocol."""
    protocols: dict[Body, dict[str, str]] = {}
    found: dict[str, dict[str, str]] = {}
    for each in compared:
        body = _stage(each).body
        if body not in protocols:
            protocols[body] = _protocol(subject, each)
        found[each.name] = protocols[body]
    return found


def _protocol(subject: StageContext, evaluation: Settings) -> dict[str, str]:
    """What an evaluation measures, as long as its policy is the same, as a message says it."""
    uses = _stage(evaluation).uses
    values = {f"`{path}`": quoted(evaluation.get(path)) for path in _PROTOCOL}
    values["the prompt"] = quoted(uses.get("prompt"))
    served = subject.servers.get(uses.get("server", ""))
    # With `on_overflow` it decides where an episode ends, or what of it is seen.
    values["`max_model_len`"] = quoted(None if served is None else served[1].get("max_model_len"))
    entry = subject.module.environments.get(uses.get("environment", ""))
    declared = subject.environment(_stage(evaluation))
    if entry is not None and declared is not None:
        world = Settings(entry, SettingTable(declared.fields))
        semantic = (field.name for field in declared.fields if field.identity == "semantic")
        values |= {f"`{name}` of the environment": quoted(world.get(name)) for name in semantic}
        for role in sorted(entry.simulators):
            values[f"the model of the {role}"] = quoted(entry.simulator_model(role))
            values |= _simulator_settings(subject, role, entry.simulator_server(role))
    return values


def _simulator_settings(subject: StageContext, role: str, server: str | None) -> dict[str, str]:
    """The settings of the server that an environment asks, by which its answers may differ."""
    found = subject.servers.get(server or "")
    if found is None:
        return {}
    backend, settings = found
    semantic = (field.name for field in backend.fields if field.identity == "semantic")
    values = {f"`{name}` of the {role}'s server": quoted(settings.get(name)) for name in semantic}
    return {f"the server of the {role}": backend.id, **values}


def _policy(evaluation: Settings) -> tuple[str, ...]:
    return _stage(evaluation).inputs.get("model", ())


def _tasks(subject: StageContext, evaluation: Stage) -> Tasks:
    """The environment's backend, the split, and how many tasks it has, where that is a fixed
    number: other settings of one backend may leave the tasks as they are."""
    entry = subject.module.environments.get(evaluation.uses.get("environment", ""))
    split = str(split_of(evaluation))
    count, factor = subject.expected_tasks(evaluation).get(split, (0.0, 0.0))
    return "" if entry is None else entry.backend, split, count if factor == 1 else 0.0


def _stage(evaluation: Settings) -> Stage:
    assert isinstance(evaluation.entry, Stage)
    return evaluation.entry


def same_prompt_as_training(subject: StageContext) -> Iterator[Finding]:
    """A policy acts under a prompt that it was trained under."""
    prompt = subject.stage.uses.get("prompt", "")
    policies = subject.stage.inputs.get("model", ())
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


def _compared(subject: StageContext) -> list[Stage]:
    inputs = subject.stage.inputs
    names = dict.fromkeys([*inputs.get("of", ()), *inputs.get("baseline", ())])
    found = [subject.module.stages.get(name) for name in names]
    return [stage for stage in found if stage is not None and stage.kind in makers(METRICS)]


def _written(subject: StageContext, source: str) -> tuple[str, ...]:
    stage = subject.module.stages.get(source)
    return () if stage is None else (f"`{source}` names it too ({place(stage, 'split')})",)


_THRESHOLD = Code(
    "AGC635",
    "a threshold that all or no episodes reach",
    "`success_at` lies outside the rewards of the environment, or the scores of the benchmark. "
    "Success is then the same for every policy. Such slips come from rewards given in percent.",
)
EVALUATIONS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC507",
            "evaluated on training tasks",
            "The policy descends from trajectories on the same split of the same environment. "
            "Such a number says how well it remembers.",
        ),
        kinds=("evaluate",),
        check=evaluated_unseen,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC509",
            "evaluations of different tasks",
            "Differences are paired by task; where two evaluations share no tasks there is "
            "nothing to pair.",
        ),
        kinds=("compare",),
        check=same_tasks,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC634",
            "training on a held-out split",
            "The split's name says that it is for evaluation. Once trained on, no number on it "
            "says how well a policy does on tasks that it has not seen.",
        ),
        kinds=_LEARNERS,
        check=held_out_untouched,
        severity="warning",
    ),
    Rule(
        code=_THRESHOLD,
        kinds=("evaluate",),
        check=success_possible,
    ),
    Rule(code=_THRESHOLD, kinds=("benchmark",), check=sample_success_possible),
    Rule(
        code=Code(
            "AGC637",
            "nothing to compare",
            "A comparison needs two evaluations: several under `of`, or one and a `baseline`.",
        ),
        kinds=("compare",),
        check=something_to_compare,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC638",
            "evaluations under different protocols",
            "The evaluations are of the same tasks, but differ in decoding, turns, attempts, "
            "prompt, the server's context or the environment's settings as well as in their "
            "policies. A table does not show which of these made a difference.",
        ),
        kinds=("compare",),
        check=same_protocol,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC639",
            "another prompt than in training",
            "Every trajectory that the policy was trained on was collected under another prompt "
            "than the one it acts under here.",
        ),
        kinds=ACTING,
        check=same_prompt_as_training,
        severity="warning",
    ),
)
