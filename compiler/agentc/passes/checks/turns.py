"""Rules about candidates of turns, the pairs that are drawn of them, and the hidden texts of their
tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentc.backend_api import StageBackend
from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage
from agentc.kinds.artifacts import CRITIC_CHECKPOINT, REWARDED_TURNS
from agentc.kinds.table import COLLECTORS, kinds_where
from agentc.passes.checks.module_analysis import collected_by, split_of
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, StageContext, place, quoted
from agentc.text import counted


def tasks_without_hidden_text(
    subject: StageContext, episodes: Sequence[Stage], which: str = ""
) -> Iterator[Finding]:
    """The first of `episodes` whose tasks are of another environment or split than the stage's
    `privileged`, or more of them. `which` says what the episodes are to it."""
    [told, *_] = [*subject.stage.inputs.get("privileged", ()), ""]
    hidden = subject.module.stages.get(told)
    for played in episodes if hidden is not None else ():
        assert hidden is not None
        if split_of(played) is None:
            continue
        spans = tuple(each.spans["split"] for each in (hidden, played) if "split" in each.spans)
        who = f"`{played.id}`" + (f", {which}" if which else " ")
        if _tasks(hidden) != _tasks(played):
            yield Finding(
                message=f"`{hidden.id}` has the hidden texts of {_split_text(hidden)}, but "
                f"{who}takes {_split_text(played)}",
                path="privileged",
                notes=(
                    f"`{played.id}` takes {_split_text(played)} ({place(played, 'split')})",
                    f"`{hidden.id}`: {place(hidden, 'split')}",
                ),
                fix="take both from the same split of the same environment",
                rests_on=spans,
            )
            return
        most, number = _limit(hidden), _limit(played)
        if most is not None and (number is None or most < number):
            yield Finding(
                message=f"`{hidden.id}` has the hidden texts of the first {most} tasks, but "
                f"{who}plays " + ("all of them" if number is None else f"the first {number}"),
                path="privileged",
                notes=(f"`{hidden.id}`: {place(hidden, 'limit')}",),
                fix=f"leave the `limit` of `{hidden.id}` out",
            )
            return


def _tasks(stage: Stage) -> tuple[str | None, object]:
    return stage.uses.get("environment"), split_of(stage)


def _split_text(stage: Stage) -> str:
    return f"the split {quoted(split_of(stage))} of `{stage.uses.get('environment')}`"


def _limit(stage: Stage) -> int | None:
    value = stage.fields.get("limit")
    return value.json if value is not None and isinstance(value.json, int) else None


def candidates_differ(subject: StageContext) -> Iterator[Finding]:
    """Several candidates of a turn are sampled, not greedy."""
    count = subject.settings.integer("candidates")
    temperature = subject.settings.number("decode.temperature")
    if count is None or count < 2 or temperature is None or temperature > 0:
        return
    yield Finding(
        message=f"at temperature 0 all {count} candidates of a turn are the same reply",
        path="decode.temperature",
        expected="above 0; the paper's is 1",
        notes=(subject.settings.note("candidates"),),
        fix="set decode.temperature to 1, or candidates to 1",
    )


def turns_give_draws(subject: StageContext) -> Iterator[Finding]:
    """A turn has as many candidates as the draws of its pairs need."""
    settings = subject.settings
    draw, wanted = settings.text("draw"), settings.integer("pairs_per_turn")
    for sample in _samples(subject):
        count = sample.integer("candidates")
        if draw is None or count is None:
            continue
        if count < 2:
            yield Finding(
                message=f"a turn of `{sample.name}` has {counted(count, 'candidate')}, and a pair "
                "has two sides",
                path="turns",
                notes=(sample.note("candidates"),),
                fix=f"set candidates of `{sample.name}` to 2 or more",
            )
        elif draw == "halves" and count % 2:
            yield Finding(
                message=f"{count} candidates of a turn have no two halves",
                path="draw",
                notes=(sample.note("candidates"),),
                fix=f"set candidates of `{sample.name}` to {count + 1}, or draw: best_worst",
            )
        elif (
            draw == "halves"
            and wanted is not None
            and settings.get("replacement") is False
            and wanted > (count // 2) ** 2
        ):
            most = (count // 2) ** 2
            yield Finding(
                message=f"{count} candidates make {counted(most, 'pair')} of an upper and a lower "
                f"one, not {wanted}",
                path="pairs_per_turn",
                notes=(sample.note("candidates"), settings.note("replacement")),
                fix=f"set pairs_per_turn to {most} or less",
            )


def hidden_as_trained(subject: StageContext) -> Iterator[Finding]:
    """A critic ranks behind hidden texts exactly if it was trained behind them."""
    shown = bool(subject.stage.inputs.get("privileged"))
    for critic in critics_of(subject):
        trained = bool(critic.inputs.get("privileged"))
        if trained and not shown:
            yield Finding(
                message=f"`{critic.id}` was trained behind hidden texts, and ranks without them "
                "here",
                path="critic",
                notes=(f"it names its `privileged` in {place(critic, 'privileged')}",),
                fix=f"set `privileged: {critic.inputs['privileged'][0]}` here",
            )
        elif shown and not trained:
            yield Finding(
                message=f"`{critic.id}` was trained without hidden texts, and is shown some here",
                path="privileged",
                fix=f"remove `privileged` here, or give it to `{critic.id}`",
            )


def reference_as_trained(subject: StageContext) -> Iterator[Finding]:
    """A critic is compared with the reference that it was trained against."""
    sampled = subject.settings.text("reference_context") == "sampler"
    ours = subject.stage.inputs.get("reference", ())
    if sampled:
        drawn = [subject.module.stages.get(n) for n in subject.stage.inputs.get("candidates", ())]
        ours = tuple(n for each in drawn if each is not None for n in each.inputs.get("model", ()))
    for critic in critics_of(subject):
        theirs = critic.inputs.get("reference") or critic.inputs.get("model", ())
        if not ours or not theirs or ours == theirs:
            continue
        yield Finding(
            message=f"`{critic.id}` was trained against `{theirs[0]}`, and is compared with "
            f"`{ours[0]}` here",
            path="reference_context" if sampled else "reference",
            notes=("an advantage is what the critic has learned beyond its reference",),
            fix=f"set reference_context: history, and reference: {theirs[0]}"
            if sampled
            else f"set `reference: {theirs[0]}`",
        )


def reference_prompt_as_trained(subject: StageContext) -> Iterator[Finding]:
    """A reference that never saw hidden texts in training is shown none in ranking.

    The other way round is the paper's: its training shows the reference what the critic reads, its
    ranking does not."""
    if subject.settings.text("reference_context") != "privileged":
        return
    for name in subject.stage.inputs.get("critic", ()):
        critic = subject.of_stages.get(name)
        if critic is not None and critic.text("reference_sees") == "history":
            yield Finding(
                message=f"the reference of `{name}` saw only the history, and is shown hidden "
                "texts here",
                path="reference_context",
                notes=(critic.note("reference_sees"),),
                fix="set reference_context: history",
            )


def ranked_as_parameterised(subject: StageContext) -> Iterator[Finding]:
    """A critic with a head is asked for its values, another one for log-ratios."""
    backend = subject.table.backends.get(subject.stage.backend)
    words = backend.capabilities if isinstance(backend, StageBackend) else frozenset()
    does = words & {"value_head", "log_ratio"}
    for name in subject.stage.inputs.get("critic", ()):
        critic = subject.of_stages.get(name)
        made = None if critic is None else critic.text("parameterisation")
        if critic is None or made is None or not does or made in does:
            continue
        head = made == "value_head"
        trained = critic.entry.inputs if isinstance(critic.entry, Stage) else {}
        against = [*trained.get("reference", ()), *trained.get("model", ())][:1]
        yield Finding(
            message=f"`{name}` is a head on a model, whose values are compared with no reference's"
            if head
            else f"`{name}` is a model whose log-probabilities are compared with a reference's, "
            "and the stage names none",
            path="critic",
            notes=(critic.note("parameterisation"), f"{subject.stage.backend} is to rank"),
            fix="leave `reference`, `reference_context`, `span`, `concurrency` and `backend` out: "
            "rank.value_head is taken then"
            if head
            else "".join(f"set `reference: {each}`" for each in against) or "name its `reference`",
        )


def hidden_of_the_tasks(subject: StageContext) -> Iterator[Finding]:
    """The hidden texts are of the tasks that the candidates' episodes were played on."""
    episodes = collected_by(subject.stage.inputs.get("candidates", ()), subject.module)
    yield from tasks_without_hidden_text(
        subject, [each for each in episodes if each.kind in COLLECTORS]
    )


def critics_of(subject: StageContext) -> Iterator[Stage]:
    """The stages that train the critics of a stage."""
    for name in subject.stage.inputs.get("critic", ()):
        stage = subject.module.stages.get(name)
        if stage is not None:
            yield stage


def _samples(subject: StageContext) -> Iterator[Settings]:
    """The stages whose candidates were ranked for the stage."""
    for ranked in subject.stage.inputs.get("turns", ()):
        stage = subject.module.stages.get(ranked)
        for name in () if stage is None else stage.inputs.get("candidates", ()):
            if name in subject.of_stages:
                yield subject.of_stages[name]


RANKED_OTHERWISE = Code(
    "AGC679",
    "ranked otherwise than the critic was trained",
    "A critic that is a language model scores by what it learned beyond its reference. Without the "
    "hidden texts that it was trained behind, with some that it never saw, or against another "
    "reference, the difference is of something else. A critic with a head (`parameterisation: "
    "value_head`) has no reference: rank.value_head takes its values as they are.",
)
HIDDEN_OF_OTHERS = Code(
    "AGC688",
    "hidden texts of other tasks",
    "A turn is ranked behind the hidden text of its task. Tasks of another split or environment, "
    "and those beyond the `limit` of the `privileged` stage, have none: the stage would fail at "
    "the first of them.",
)
_RANKERS = kinds_where(lambda kind: kind.produces == REWARDED_TURNS)
_COMPARING = kinds_where(lambda kind: kind.reads(CRITIC_CHECKPOINT))
"""Kinds in which a critic compares candidates."""
_DRAWING = kinds_where(lambda kind: kind.has("candidates"))
TURNS: tuple[Rule, ...] = (
    Rule(code=RANKED_OTHERWISE, kinds=_COMPARING, check=hidden_as_trained),
    Rule(code=RANKED_OTHERWISE, kinds=_COMPARING, check=reference_as_trained),
    Rule(code=RANKED_OTHERWISE, kinds=_RANKERS, check=reference_prompt_as_trained),
    Rule(code=RANKED_OTHERWISE, kinds=_RANKERS, check=ranked_as_parameterised),
    Rule(code=HIDDEN_OF_OTHERS, kinds=_RANKERS, check=hidden_of_the_tasks),
    Rule(
        code=Code(
            "AGC677",
            "candidates that are all the same",
            "Candidates of a turn are compared with each other. Greedy decoding gives the same "
            "reply each time, so nothing could be chosen or rejected.",
        ),
        kinds=_DRAWING,
        check=candidates_differ,
    ),
    Rule(
        code=Code(
            "AGC678",
            "draws that a turn cannot give",
            "Pairs of a turn are drawn from the upper and the lower half of its candidates "
            "(SWEET-RL, arXiv 2503.15478, section 4.2). An odd number has no halves, and n "
            "candidates make no more than (n/2) x (n/2) different pairs.",
        ),
        kinds=kinds_where(lambda kind: kind.reads(REWARDED_TURNS)),
        check=turns_give_draws,
    ),
)
