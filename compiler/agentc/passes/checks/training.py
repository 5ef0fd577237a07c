"""Rules about the course of a training: schedule, checkpoints, adapters, which rows are kept."""

from __future__ import annotations

import math
from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.kinds.artifacts import SFT_DATASET
from agentc.kinds.table import REWORKERS, TRAINERS, kinds_where
from agentc.passes.checks.model_shape import model_shape
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext, place
from agentc.runtime.model_folder.lora_targets import modules_of, target_faults, usual_modules
from agentc.text import counted

_FROM_OUTSIDE = kinds_where(lambda kind: kind.produces == SFT_DATASET and not kind.reworks)
_MOST_WARMUP = 0.5
_HIGHEST_LR = 0.1
"""AdamW moves every weight by about `lr` a step; published fine-tuning stays below 0.01."""


def warmup_leaves_training(subject: StageContext) -> Iterator[Finding]:
    """The warm-up is a part of the training, and there where the `scheduler` is named for it."""
    settings = subject.settings
    ratio, scheduler = settings.number("warmup_ratio") or 0.0, settings.text("scheduler")
    if ratio > _MOST_WARMUP:
        steps = settings.integer("max_steps")
        share = f"{100 * ratio:g}% of the steps"
        if steps is not None:
            share = f"{ratio:g} x {steps} steps = {ratio * steps:g} steps"
        yield Finding(
            message=f"a warmup_ratio of {ratio:g} warms up for more than half of the training",
            path="warmup_ratio",
            notes=(f"{share} are spent below the learning rate of {settings.number('lr'):g}",),
            fix="set a share such as 0.03 or 0.1; it is no number of steps",
        )
    elif ratio == 0 and scheduler == "constant_with_warmup":
        yield Finding(
            message="the scheduler `constant_with_warmup` has no warm-up: warmup_ratio is 0",
            path="scheduler",
            notes=(settings.note("warmup_ratio"),),
            fix="set warmup_ratio, such as 0.1, or scheduler: constant",
        )


def epochs_or_steps(subject: StageContext) -> Iterator[Finding]:
    """A training ends by `epochs` or by `max_steps`, not by both."""
    settings, defaulted = subject.settings, subject.stage.defaulted
    steps = settings.integer("max_steps")
    if steps is None or not settings.is_set("epochs"):
        return
    # A default is for the stages that do not say otherwise, and a scale is there to say otherwise.
    if subject.module.scale is not None or ("epochs" in defaulted and "max_steps" not in defaulted):
        return
    yield Finding(
        message=f"the training ends after {steps} steps, whatever `epochs` says",
        path="epochs",
        notes=(settings.note("epochs"), settings.note("max_steps")),
        fix="remove one of them",
    )


def saved_before_end(subject: StageContext) -> Iterator[Finding]:
    """`save_every` comes before the end of the training."""
    every, steps = subject.settings.integer("save_every"), subject.settings.integer("max_steps")
    if every is None or steps is None or every < steps:
        return
    yield Finding(
        message=f"a checkpoint every {every} steps is never saved in a training of {steps} steps",
        path="save_every",
        notes=(
            subject.settings.note("max_steps"),
            "a training that is cut off would begin again",
        ),
        fix=f"set save_every to {max(1, steps // 10)}, or leave it out",
    )


def plausible_rate(subject: StageContext) -> Iterator[Finding]:
    """The learning rate is one that AdamW can train a transformer with."""
    rate = subject.settings.number("lr")
    if rate is None or rate < _HIGHEST_LR:
        return
    meant = _with_negative_exponent(rate)
    yield Finding(
        message=f"a learning rate of {rate:g} destroys the weights in the first steps",
        path="lr",
        expected="a number such as 1e-3 (a small new model) or 2e-5 (a pretrained one)",
        fix=f"did you mean {meant}?" if meant else None,
    )


def _with_negative_exponent(rate: float) -> str | None:
    digits, _, exponent = f"{rate:e}".partition("e")
    power = int(exponent)
    return f"{float(digits):g}e-{power}" if power >= 3 else None


def adapters_low_rank(subject: StageContext) -> Iterator[Finding]:
    """The rank of `lora` is below the width of the model that it adapts."""
    rank, model = subject.settings.integer("lora.rank"), subject.scratch_model()
    width = None if model is None else model.integer("hidden_size")
    if rank is None or model is None or width is None or rank < width:
        return
    yield Finding(
        message=f"adapters of rank {rank} are no smaller than the layers they adapt",
        path="lora.rank",
        notes=(model.note("hidden_size"),),
        fix=f"set lora.rank below {width}, such as {max(1, width // 16)}, or leave `lora` out",
    )


def adapters_find_layers(subject: StageContext) -> Iterator[Finding]:
    """Every name in `lora.targets` is a layer of the model, where its layers are known."""
    targets = subject.settings.texts("lora.targets")
    modules, tied = _adaptable(subject) if targets else (None, False)
    for fault in target_faults(targets, modules, tied, exact=False):
        yield Finding(
            message=fault.message,
            path=f"lora.targets.{fault.number}",
            notes=(fault.note,) if fault.note else (),
            fix=fault.fix,
        )


def _adaptable(subject: StageContext) -> tuple[tuple[str, ...] | None, bool]:
    """The modules of the model, None where nobody knows, and whether its embeddings are tied."""
    model = subject.model("model")
    folder = None if model is None else subject.folders.get(model.name)
    if folder is not None and folder.content.tensors:
        return modules_of(folder.content.tensors), folder.content.tied
    shape = model_shape(subject, "model")
    return (None, False) if shape is None else (usual_modules(), shape.tied)


def examples_not_trained(subject: StageContext) -> Iterator[Finding]:
    """Replies of in-context examples are trained only where `loss_on` says so."""
    if subject.settings.is_set("loss_on"):
        return
    for name in subject.stage.inputs.get("data", ()):
        source = subject.module.stages.get(name)
        prompt = None if source is None else subject.prompt(source)
        if source is None or prompt is None or not prompt.examples:
            continue
        replies = sum(role == "assistant" for each in prompt.examples for role, _ in each)
        yield Finding(
            message=f"every row of `{source.id}` trains the example replies "
            f"({replies}) of its prompt `{prompt.name}` again",
            path="data",
            notes=(
                subject.settings.note("loss_on"),
                f"the prompt has {counted(len(prompt.examples), 'example')} "
                f"(line {prompt.origin.span.line})",
            ),
            fix="set `loss_on: after_prompt`, or `loss_on: all_replies` if it is meant",
        )


def rows_above_reward(subject: StageContext) -> Iterator[Finding]:
    """`min_reward` keeps some trajectories and leaves some out."""
    least = subject.settings.number("min_reward")
    if least is None:
        return
    ranges = []
    for name in subject.stage.inputs.get("data", ()):
        source = subject.module.stages.get(name)
        environment = None if source is None else subject.environment(source)
        if source is None or environment is None:
            return
        ranges.append((source, environment))
    if not ranges:
        return
    notes = tuple(
        f"`{source.id}`: rewards of {environment.id} run from {environment.reward_range[0]:g} to "
        f"{environment.reward_range[1]:g} ({place(source, 'environment')})"
        for source, environment in ranges
    )
    highest = max(environment.reward_range[1] for _, environment in ranges)
    lowest = min(environment.reward_range[0] for _, environment in ranges)
    if least > highest:
        yield Finding(
            message=f"a min_reward of {least:g} leaves no trajectory to train on",
            path="min_reward",
            notes=notes,
            fix=f"set min_reward to {highest:g} or less",
        )
    elif least <= lowest:
        yield Finding(
            message=f"a min_reward of {least:g} leaves out no trajectory that has a reward",
            path="min_reward",
            severity="warning",
            notes=notes,
            fix=f"set min_reward above {lowest:g}, or leave it out",
        )


def rows_have_rewards(subject: StageContext) -> Iterator[Finding]:
    """`min_reward` is for rows that have rewards, which conversations of a `dataset` lack."""
    least = subject.settings.number("min_reward")
    if least is None:
        return
    waiting = list(reversed(subject.stage.inputs.get("data", ())))
    seen: set[str] = set()
    while waiting:
        source = subject.module.stages.get(waiting.pop())
        if source is None or source.id in seen:
            continue
        seen.add(source.id)
        for role in reversed(REWORKERS.get(source.kind, ())):
            waiting.extend(reversed(source.inputs.get(role, ())))
        given = subject.of_stages[source.id]
        stated = given.get("reward") is not None or given.get("task_ids") == "eto_webshop"
        if source.kind in _FROM_OUTSIDE and not stated:
            yield Finding(
                message=f"a min_reward of {least:g} leaves out the rows of `{source.id}`, which "
                "have no reward",
                path="min_reward",
                severity="warning",
                notes=(
                    "rows of a file have rewards only where agentc has written them, or where "
                    "`reward` states one",
                ),
                fix="leave it out; a revise stage filters by `alpha` before rows are mixed",
            )


def share_of_enough(subject: StageContext) -> Iterator[Finding]:
    """`keep_best` comes to one trajectory at least of those that there can be."""
    share, most = subject.settings.number("keep_best"), 0
    if share is None:
        return
    notes = []
    for name in subject.stage.inputs.get("data", ()):
        given = subject.of_stages.get(name)
        tasks = None if given is None else given.integer("limit")
        if given is None or tasks is None:
            return
        of_each = given.integer("attempts") or 1
        most += tasks * of_each
        notes.append(f"`{name}` makes {tasks * of_each} at most")
    if most and share * most < 1:
        yield Finding(
            message=f"a keep_best of {share:g} leaves no trajectory of {most} to train on",
            path="keep_best",
            notes=tuple(notes),
            fix=f"set keep_best to {math.ceil(1000 / most) / 1000:g} or more, or collect more",
        )


_REWARD_FILTER = Code(
    "AGC646",
    "a reward filter that keeps all or nothing",
    "`min_reward` lies outside the rewards of the environments that the rows come from, rows come "
    "from a file and have none, or the share `keep_best` of them is less than one.",
)

TRAINING: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC640",
            "a warm-up that does not suit the schedule",
            "`warmup_ratio` is a share of all steps, no number of them; and a schedule that is "
            "named for its warm-up needs one.",
        ),
        kinds=TRAINERS,
        check=warmup_leaves_training,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC655",
            "epochs beside a number of steps",
            "only `max_steps` says when a training ends; `epochs` beside it is read by people, "
            "but by no trainer.",
        ),
        kinds=TRAINERS,
        check=epochs_or_steps,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC641",
            "a checkpoint that is never saved",
            "`save_every` lies beyond `max_steps`, so a run that is cut off has nothing to "
            "continue from.",
        ),
        kinds=TRAINERS,
        check=saved_before_end,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC642",
            "a learning rate that destroys the model",
            "AdamW moves each weight by about the learning rate in every step. A lost minus sign "
            "in an exponent makes 2e5 of 2e-5.",
        ),
        kinds=TRAINERS,
        check=plausible_rate,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC643",
            "adapters on layers that are not there",
            "`lora.targets` names a layer that the model lacks. PEFT is silent about it as long as "
            "it finds another one.",
        ),
        kinds=TRAINERS,
        check=adapters_find_layers,
    ),
    Rule(
        code=Code(
            "AGC644",
            "adapters that are not low-rank",
            "Adapters of a rank as large as the layer have more weights than the layer itself.",
        ),
        kinds=TRAINERS,
        check=adapters_low_rank,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC645",
            "examples of the prompt are trained",
            "In-context examples are at the beginning of every row, and by default their replies "
            "are trained like all others: the same few texts, once for every row.",
        ),
        kinds=("sft",),
        check=examples_not_trained,
        severity="warning",
    ),
    Rule(code=_REWARD_FILTER, kinds=("sft",), check=rows_above_reward),
    Rule(code=_REWARD_FILTER, kinds=("sft",), check=rows_have_rewards),
    Rule(code=_REWARD_FILTER, kinds=("sft",), check=share_of_enough),
)
