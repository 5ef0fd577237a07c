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
        "A stage refers to an entry of `environments:`, `servers:` or `prompts:` by its name, and "
        "there is none of this name. It is the name that the spec gives the entry, not that of the "
        "backend behind it.",
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
        "This input takes one stage. Several models cannot be one starting point, for example; "
        "where each is meant to be used, write a stage for each.",
    ),
    Code(
        "AGC405",
        "stages that depend on each other in a cycle",
        "Each of these stages waits for the next, so none can start. A stage whose next round uses "
        "its own result is a `repeat:`, with `carry:` for what is handed on.",
    ),
    Code(
        "AGC406",
        "a default that no stage takes",
        "A value under `defaults:` is taken by stages whose kind has that key and which do not set "
        "it; here there is none. It is an error where no stage has the key, and a warning where "
        "every stage that has it sets a value of its own.",
    ),
    Code(
        "AGC407",
        "`per_round` outside a repeat",
        "`per_round:` lists a value for each round of the `repeat:` that the stage stands in; this "
        "one stands in none.",
    ),
    Code(
        "AGC408",
        "too few values for the rounds",
        "`per_round:` needs a value for each round; none is taken twice unless it is written "
        "twice, so that a round added later does not train with a setting that nobody chose.",
    ),
    Code(
        "AGC409",
        "a carried stage that cannot be carried",
        "`from:` names a stage outside the "
        "repeat (round 1 takes it); `next:` names a stage inside of it (round k takes that of "
        "round k-1), or a carried name. Either may be a list: `past: {from: [], next: [past, "
        "pairs]}` is the pairs of all rounds before.",
    ),
    Code(
        "AGC410",
        "a repeat inside a repeat",
        "Rounds cannot be nested in this version. Mostly the inner rounds can be written as more "
        "rounds of the outer one, or as stages.",
    ),
    Code(
        "AGC411",
        "an entry that nothing uses",
        "A model, environment, server or prompt is declared, but no stage refers to it, so what it "
        "says has no effect. Often a stage was meant to use it and uses another. In a spec with "
        "`scales:`, `agentc check` reports what no scale uses.",
    ),
    Code(
        "AGC412",
        "no such round",
        "The repeat has fewer rounds than the name asks for, or the "
        "name does not say which stage of the repeat is meant.",
    ),
    Code(
        "AGC413",
        "a stage has the name of one that agentc adds",
        "Every experiment ends with a stage `report`. Where a stage of another kind is called so, "
        "the report is `final_report`, which commands and people will look for in vain.",
    ),
)
