"""Diagnostic codes of layer 5 that are about the types of inputs."""

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
)
