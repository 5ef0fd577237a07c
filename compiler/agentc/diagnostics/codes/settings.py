"""Diagnostic codes of layer 5: types of inputs and rules between settings."""

from agentc.diagnostics.codes.code import Code

SETTINGS: tuple[Code, ...] = (
    Code(
        "AGC501",
        "an input of the wrong type",
        "Stages are joined by typed artifacts: trajectories, pairs, checkpoints, metrics. The "
        "stage takes another type than the one that the named stage produces; "
        "docs/reference/spec.md says what each kind takes and makes.",
    ),
    Code(
        "AGC502",
        "an input is missing",
        "The stage cannot work without this input.",
        "A spec gets AGC202 or AGC205 for it first; this is for modules that were made otherwise.",
    ),
    Code(
        "AGC503",
        "a batch that does not divide",
        "An optimiser step is made of equal shares: global_batch must be processes x "
        "micro_batch x a whole number of accumulation steps. Integer division would "
        "silently train with another batch.",
    ),
    Code(
        "AGC504",
        "no such split",
        "Environments declare the names of their task splits; docs/backends.md lists them.",
    ),
    Code(
        "AGC505",
        "repeated greedy attempts",
        "At temperature 0 a policy answers the same prompt with the same reply, so several "
        "attempts at a task add little.",
    ),
    Code(
        "AGC506",
        "more turns than the environment allows",
        "The environment ends episodes earlier, so the limit of the stage is never reached: the "
        "number in the spec is not the one that acts.",
    ),
    Code(
        "AGC507",
        "evaluated on training tasks",
        "The policy descends from trajectories on the same split of the same environment. "
        "Such a number says how well it remembers.",
    ),
    Code(
        "AGC508",
        "longer than the model's context",
        "The model that this stage starts from is made by this spec with fewer positions than the "
        "stage asks for. Beyond them it has no position to give a token: training would fail, or "
        "learn nonsense.",
    ),
    Code(
        "AGC509",
        "evaluations of different tasks",
        "Differences are paired by task; where two evaluations share no tasks there is "
        "nothing to pair.",
    ),
    Code(
        "AGC510",
        "a limit beyond the split",
        "A split has fewer tasks than the stage's `limit`, so the number in the spec is not the "
        "one that acts. Often it was meant for another split, or for another environment.",
    ),
)
