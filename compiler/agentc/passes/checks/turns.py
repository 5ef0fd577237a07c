"""Rules about candidates of turns."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext


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
        notes=(subject.settings.shown("candidates"),),
        fix="set decode.temperature to 1, or candidates to 1",
    )


TURNS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC677",
            "candidates that are all the same",
            "Candidates of a turn are compared with each other. Greedy decoding gives the same "
            "reply each time, so nothing could be chosen or rejected.",
        ),
        kinds=("sample",),
        check=candidates_differ,
    ),
)
