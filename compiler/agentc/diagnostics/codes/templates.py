"""Diagnostic codes of templates, scales and the matrix (layer 4)."""

from agentc.diagnostics.codes.code import Code

TEMPLATES: tuple[Code, ...] = (
    Code(
        "AGC420",
        "a broken template",
        "A template says what it makes (`template: stage`), what it is for (`doc:`), and has a "
        "`body:`.",
    ),
    Code(
        "AGC421",
        "unknown template",
        "`use:` names a template that ships with agentc, or a file beside the spec as "
        "`./mine.yaml`. `agentc templates` lists the former.",
    ),
    Code(
        "AGC422",
        "a template outside of the spec's folder",
        "A spec may come from a stranger: it reads templates from its own folder only.",
    ),
    Code(
        "AGC423",
        "`with` or `append` without `use`",
        "They give values to a template and extend its lists, so they stand beside `use:`.",
    ),
    Code(
        "AGC424",
        "a wrong value for a template's parameter",
        "The value is not of the type that the template declares, or out of its bounds.",
    ),
    Code(
        "AGC425",
        "nothing to append to",
        "`append:` adds items behind lists that the template has.",
    ),
    Code(
        "AGC426",
        "a template of another kind",
        "A template makes one kind of thing, which belongs in one section of the spec.",
    ),
    Code(
        "AGC427",
        "templates that use each other",
        "A template may use others, but not itself, directly or through others.",
    ),
    Code(
        "AGC428",
        "a template's parameter without a value",
        "A parameter without a default has to be given under `with:`.",
    ),
    Code(
        "AGC429",
        "unknown parameter of a template",
        "`with:` gives values to the parameters that the template declares; settings of the body "
        "are overridden beside `use:`.",
    ),
    Code(
        "AGC431",
        "unknown scale",
        "`--scale` chooses one of the spec's `scales:`.",
    ),
    Code(
        "AGC432",
        "a scale that adds something",
        "A scale changes numbers and settings of what the spec has; the graph of stages stays the "
        "same, so it cannot add params, stages or entries.",
    ),
    Code(
        "AGC433",
        "a matrix over something unknown",
        "`matrix:` sweeps over params of the spec, and `exclude` leaves out combinations of them.",
    ),
    Code(
        "AGC434",
        "an empty matrix",
        "Every combination of values is excluded.",
    ),
    Code(
        "AGC435",
        "the same value twice",
        "Two equal values of one param would give the same results twice.",
    ),
)
