"""Diagnostic codes of layer 4 that are about claims."""

from agentc.diagnostics.codes.code import Code

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
        "noise in its number cannot be told, and so there is no verdict on another number.",
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
        "a judge without claims",
        "A stage of kind judge sets how the spec's claims are judged; there are none.",
    ),
    Code(
        "AGC449",
        "a second judge",
        "One stage of kind judge judges every claim of the spec.",
    ),
    Code(
        "AGC450",
        "a condition that no spec can meet",
        "`needs` of a claim names settings: `environment.SETTING` of the environment of its stage, "
        "or `params.NAME`, each with the value that it must have, or `{not: VALUE}`.",
    ),
)
