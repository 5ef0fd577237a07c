"""Rules about runs of online RL."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.kinds.groups import ONLINE
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext, place, quoted

_ALIKE = ("episodes", "critic.hidden")
"""Settings on which the numbers of episodes and the shapes of networks rest."""


def goes_on_as_it_began(subject: StageContext) -> Iterator[Finding]:
    """A run that goes on from another one has its algorithm, its policy and its shapes."""
    stage = subject.stage
    for name in stage.inputs.get("start", ()):
        source = subject.module.stages.get(name)
        if source is None:
            continue
        if source.kind != stage.kind:
            yield Finding(
                message=f"`{stage.id}` cannot go on from `{name}`, a run of kind {source.kind}",
                path="start",
                notes=("it played no episodes, so that there is nothing to play on from",),
                fix=f"write `policy: {name}` in place of `start`, which begins a run from its "
                "policy",
            )
            continue
        theirs = subject.of_stages.get(name)
        pairs: list[tuple[str, object, object]] = [
            ("backend", stage.backend, source.backend),
            ("policy", stage.inputs.get("policy"), source.inputs.get("policy")),
            ("environment", stage.uses.get("environment"), source.uses.get("environment")),
        ]
        if theirs is not None:
            pairs += [(path, subject.settings.get(path), theirs.get(path)) for path in _ALIKE]
        for path, ours, other in pairs:
            if ours != other:
                yield Finding(
                    message=f"`{stage.id}` goes on from `{name}` with another `{path}`",
                    path=path,
                    notes=(
                        f"`{name}` has {_shown(other)} ({place(source, path)})",
                        f"`{stage.id}` has {_shown(ours)}",
                    ),
                    fix=f"write the same as in `{name}`, or leave `start` out and begin anew",
                )


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else quoted(value)  # type: ignore[arg-type]


REINFORCEMENT: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC611",
            "a run that goes on as another one",
            "`start` continues a run as if it had been longer: with its weights, its optimisers "
            "and its episodes. Another algorithm, policy, environment or shape of networks has no "
            "place for them, and with another number of episodes an iteration would draw anew "
            "what was drawn before.",
        ),
        kinds=ONLINE,
        check=goes_on_as_it_began,
    ),
)
