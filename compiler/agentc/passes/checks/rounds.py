"""Rules about rounds and resumed runs: what a repeat changes, and what a run of online RL may
not.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.backend_api import StageBackend
from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Stage, algorithm_of
from agentc.kinds import KINDS
from agentc.kinds.table import ONLINE
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext, place, quoted


def rounds_differ(subject: StageContext) -> Iterator[Finding]:
    """Round 2 of a repeat does something else than round 1."""
    stage = subject.stage
    repeat, mark, _ = stage.id.partition(".2.")
    if stage.round != 2 or not mark:
        return
    second = subject.around.second_rounds.get(repeat, ())
    if not second or second[0] is not stage:
        return  # said once for each repeat
    for other in second:
        first = subject.module.stages.get(other.id.replace(".2.", ".1.", 1))
        if first is None or _work(first, f"{repeat}.1.") != _work(other, f"{repeat}.2."):
            return
    yield Finding(
        message=f"round 2 of `{repeat}` does exactly what round 1 does",
        path="",
        notes=("no stage of it takes anything from round 1, and no setting depends on `round`",),
        fix="`carry` a stage from each round to the next, or leave `repeat` out",
    )


def _work(stage: Stage, own: str) -> object:
    """What a stage of a round does, comparable with the same stage of another round."""
    return (
        stage.backend,
        {name: value.json for name, value in stage.fields.items()},
        {name: value.json for name, value in stage.options.items()},
        {role: [name.removeprefix(own) for name in names] for role, names in stage.inputs.items()},
        stage.uses,
    )


ROUNDS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC658",
            "rounds that are all the same",
            "Nothing is carried from one round to the next and nothing depends on the round, so "
            "every round gives the same result. Most often `carry` is missing, or its name is not "
            "used.",
        ),
        kinds=tuple(kind.name for kind in KINDS),
        check=rounds_differ,
        severity="warning",
    ),
)


# Rules about runs of online RL.

_ALIKE = ("episodes", "critic.hidden")
"""Settings on which the numbers of episodes and the shapes of networks rest."""


def _algorithm(stage: Stage, subject: StageContext) -> str | None:
    """What a stage says, or else what its backend implements."""
    backend = subject.table.backends.get(stage.backend)
    own = backend.algorithms if isinstance(backend, StageBackend) else ()
    return algorithm_of(stage.fields) or next(iter(own), None)


def goes_on_as_it_began(subject: StageContext) -> Iterator[Finding]:
    """A run that resumes from another one has its algorithm, its model and its shapes."""
    stage = subject.stage
    for name in stage.inputs.get("start", ()):
        source = subject.module.stages.get(name)
        if source is None:
            continue
        if source.kind != stage.kind:
            yield Finding(
                message=f"`{stage.id}` cannot continue from `{name}`, a run of kind {source.kind}",
                path="start",
                notes=("it played no episodes, so that there is nothing to play on from",),
                fix=f"write `model: {name}` in place of `start`, which begins a run from its "
                "policy",
            )
            continue
        theirs = subject.of_stages.get(name)
        algorithms = _algorithm(stage, subject), _algorithm(source, subject)
        backends = (stage.backend, source.backend)
        pairs: list[tuple[str, object, object]] = [
            ("algorithm", *algorithms) if len({*algorithms}) > 1 else ("backend", *backends),
            ("model", stage.inputs.get("model"), source.inputs.get("model")),
            ("environment", stage.uses.get("environment"), source.uses.get("environment")),
        ]
        if theirs is not None:
            pairs += [(path, subject.settings.get(path), theirs.get(path)) for path in _ALIKE]
        for path, ours, other in pairs:
            if ours != other:
                yield Finding(
                    message=f"`{stage.id}` continues from `{name}` with another `{path}`",
                    path=path,
                    notes=(
                        f"`{name}` has {_value_text(other)} ({place(source, path)})",
                        f"`{stage.id}` has {_value_text(ours)}",
                    ),
                    fix=f"write the same as in `{name}`, or leave `start` out and begin again",
                )


def _value_text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else quoted(value)  # type: ignore[arg-type]


REINFORCEMENT: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC611",
            "a run that continues as another one",
            "`start` continues a run as if it had been longer: with its weights, its optimisers "
            "and its episodes. Another algorithm, policy, environment or shape of networks has no "
            "place for them, and with another number of episodes an iteration would draw again "
            "what was drawn before.",
        ),
        kinds=ONLINE,
        check=goes_on_as_it_began,
    ),
)
