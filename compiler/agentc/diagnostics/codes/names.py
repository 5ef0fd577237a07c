"""Diagnostic codes of layer 4: names, edges and rounds."""

from agentc.diagnostics.codes.code import Code

NAMES: tuple[Code, ...] = (
    Code(
        "AGC401",
        "unknown stage or model",
        "An input names something that the spec does not declare where the stage can see it.",
    ),
    Code(
        "AGC402",
        "unknown environment, server or prompt",
        "The name is not an entry of that section.",
    ),
    Code(
        "AGC403",
        "an environment, server or prompt must be named",
        "A section with exactly one "
        "entry is taken without being named; with none or several, the stage has to say which.",
    ),
    Code(
        "AGC404",
        "several stages where one is wanted",
        "This input takes one stage.",
    ),
    Code(
        "AGC405",
        "a circle of stages",
        "Each of these stages waits for the next, so none can start.",
    ),
    Code(
        "AGC406",
        "a default that no stage takes",
        "A value under `defaults:` is taken by stages "
        "whose kind has that key and which do not set it; here there is none.",
    ),
    Code(
        "AGC407",
        "`per_round` outside a repeat",
        "Only stages inside a `repeat:` have rounds.",
    ),
    Code(
        "AGC408",
        "too few values for the rounds",
        "`per_round:` needs a value for each round.",
    ),
    Code(
        "AGC409",
        "a carried stage that cannot be carried",
        "`from:` names a stage outside the "
        "repeat (round 1 takes it); `next:` names a stage inside of it (round k takes that of "
        "round k-1).",
    ),
    Code(
        "AGC410",
        "a repeat inside a repeat",
        "Rounds cannot be nested in this version.",
    ),
    Code(
        "AGC411",
        "an entry that nothing uses",
        "A model, environment, server or prompt is declared, but no stage refers to it.",
    ),
    Code(
        "AGC412",
        "no such round",
        "The repeat has fewer rounds than the name asks for, or the "
        "name does not say which stage of the repeat is meant.",
    ),
)
