"""Diagnostic codes of layer 2: keys and values of the spec."""

from agentc.diagnostics.codes.code import Code

STRUCTURE: tuple[Code, ...] = (
    Code(
        "AGC201",
        "unknown key",
        "No such key exists at this place. Nothing in a spec is ever "
        "ignored, so a misspelt setting cannot fall back to its default unnoticed. Keys of other "
        "tools get the key that means the same here. What follows from the slip is not reported: "
        "neither that the key that was meant is missing, nor what is wrong with its value.",
    ),
    Code(
        "AGC202",
        "a key is missing",
        "The key has no default, since no value of it would be right for most experiments: "
        "learning rates, batches and lengths are choices. It may stand in the stage, or under "
        "`defaults:` for every stage that has such a key.",
    ),
    Code(
        "AGC203",
        "a value of the wrong type",
        "The value cannot be read as what its place wants. "
        "`yes`, `no`, `on` and `off` are words; `2e-5` and `1_000` are numbers.",
    ),
    Code(
        "AGC204",
        "not one of the choices",
        "The value is a word, but not one of those allowed. The message lists them; "
        "`agentc schema` says what each means.",
    ),
    Code(
        "AGC205",
        "out of bounds",
        "The value is of the right type but too small, too large, too short or too long. Bounds "
        "are those of what the value is used for: a learning rate of 0 trains nothing, a batch has "
        "at least one row.",
    ),
    Code(
        "AGC206",
        "not a valid name",
        "Names of stages, models, params and other entries consist "
        "of small letters, digits and `_`, and start with a letter.",
    ),
    Code(
        "AGC207",
        "a name is taken",
        "Models and stages share one space of names, since stages refer to both in the same way.",
    ),
    Code(
        "AGC208",
        "another version of the language",
        "`agentc:` names the version of the spec language; this release reads version 1.",
    ),
    Code(
        "AGC209",
        "unknown stage kind",
        "`kind:` says what a stage does; `agentc schema` lists the kinds.",
    ),
    Code(
        "AGC210",
        "a value breaks its pattern",
        "The text does not have the form that its place wants. A model's revision, for example, is "
        "a commit: a branch such as `main` may be another model tomorrow, and nothing would tell.",
    ),
    Code(
        "AGC211",
        "nothing to compile",
        "The spec declares no stage and no model.",
    ),
    Code(
        "AGC212",
        "an empty instruction",
        "Every conversation starts with the instruction of its prompt. An empty one is allowed, "
        "and is hardly ever meant, unless whole replies are actions (`reply_format: text`): then "
        "the task may be all that is said.",
    ),
    Code(
        "AGC213",
        "two first messages",
        "With `role: system` the instruction of a prompt is the system message. There is one of "
        "these at most, and no agent answers it: `system` and `acknowledgement` have no place.",
    ),
    Code(
        "AGC214",
        "a configuration of another tool",
        "The keys are those of a trainer's own configuration file. A spec describes a whole "
        "experiment: models, environments, and the stages between them, of which a training is "
        "one. Its settings go there; unknown keys get their names here one by one.",
    ),
)
