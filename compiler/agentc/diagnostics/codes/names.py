"""Diagnostic codes of layer 4: names, edges and rounds, claims, templates, scales and the
matrix.
"""

from __future__ import annotations

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
        "`per_round:` lists a value for each round of the `repeat:` that the stage is in; this "
        "one is in none.",
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
        "The repeat has fewer rounds than the name requests, or the "
        "name does not say which stage of the repeat is meant.",
    ),
    Code(
        "AGC413",
        "a stage has the name of one that agentc adds",
        "Every experiment ends with a stage `report`. Where a stage of another kind is called so, "
        "the report is `final_report`, which commands and people will look for in vain.",
    ),
)


# Diagnostic codes of layer 4 that are about claims.

CLAIMS: tuple[Code, ...] = (
    Code(
        "AGC440",
        "a claim about a stage that measures nothing",
        "A claim is tested on the scores of an evaluate stage; one about how much was played until "
        "a return was reached, on the curve of a run of RL.",
    ),
    Code(
        "AGC441",
        "a claim must say one thing",
        "A claim says that a number is some `value` (give or take a `tolerance`), or only that it "
        "lies `above` or `below` some number. One about a curve says which return is reached, and "
        "claims a side.",
    ),
    Code(
        "AGC442",
        "a claimed number that no result can have",
        "The environment's rewards lie in a known range, success between 0 and 1. Most often the "
        "paper prints points of a hundred and `percent: true` is missing.",
    ),
    Code(
        "AGC443",
        "a claimed value without the paper's n",
        "A mean over 200 test tasks is known to a few points only. Without the paper's n the "
        "noise in its number cannot be determined, and so there is no verdict on another number.",
    ),
    Code(
        "AGC444",
        "a difference between evaluations of other tasks",
        "Differences are paired by task: both evaluations need the same environment, split and "
        "limit. So do two runs of RL whose curves are compared, which are evaluated alike too.",
    ),
    Code(
        "AGC445",
        "a percentage below one",
        "With `percent: true` numbers are points of a hundred, as most papers print them.",
    ),
    Code(
        "AGC446",
        "a claim over what is not swept",
        "`over` names params of the spec's `matrix:`; the claim is about the mean of the runs that "
        "their values give.",
    ),
    Code(
        "AGC447",
        "a claim about a metric that nobody asked for",
        "An evaluation measures reward and success by itself, `best_of(k)`, `pass_at(k)` and "
        "`loops` where its settings say so. `cosine` and `composite` are the reward, where the "
        "environment calls it so: the first is measured where an encoder is leased (`scorer`).",
    ),
    Code(
        "AGC448",
        "a verdicts stage without claims",
        "A stage of kind verdicts sets how the spec's claims are tested; there are none.",
    ),
    Code(
        "AGC449",
        "a second verdicts stage",
        "One stage of kind verdicts tests every claim of the spec.",
    ),
    Code(
        "AGC450",
        "a condition that no spec can meet",
        "`needs` of a claim names settings: `environment.SETTING` of the environment of its stage, "
        "or `params.NAME`, each with the value that it must have, or `{not: VALUE}`.",
    ),
)


# Diagnostic codes of templates, scales and the matrix (layer 4).

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
        "`use:` names a bundled template, or a file beside the spec as "
        "`./mine.yaml`. `agentc init --templates` lists the former.",
    ),
    Code(
        "AGC422",
        "a template outside of the spec's folder",
        "A spec may come from a third party: it reads templates from its own folder only.",
    ),
    Code(
        "AGC423",
        "`with` or `append` without `use`",
        "They give values to a template and extend its lists, so they are beside `use:`.",
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
