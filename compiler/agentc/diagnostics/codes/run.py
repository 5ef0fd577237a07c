"""Diagnostic codes of layer 7: the store and runs."""

from agentc.diagnostics.codes.code import Code

RUN: tuple[Code, ...] = (
    Code(
        "AGC720",
        "a gated claim that does not hold",
        "The spec marks the claim with `gate: true`, and the evaluation contradicts it beyond "
        "what chance explains; `agentc run` and `agentc report --claims` exit with 6. "
        "docs/claims.md says how verdicts are made.",
        no_example="It takes results that contradict the claim.",
    ),
    Code(
        "AGC730",
        "over the budget",
        "The estimate of what is left to run exceeds an amount under `budget:`, so nothing was "
        "started. `agentc plan --cost SPEC` shows the estimate by stage and what it depends on; "
        "what "
        "the store has already costs nothing again. `agentc run --over-budget` runs all the same.",
        no_example="It takes a run: a spec with `budget: {wall_hours: 0.001}` gets it.",
    ),
    Code(
        "AGC731",
        "a budget that bounds nothing",
        "`quantile` and `gpu` say how amounts are compared, and no amount is given.",
    ),
    Code(
        "AGC732",
        "GPU-hours of an experiment without GPUs",
        "No stage requests a GPU (`placement: {gpus: ...}`), so that no run uses GPU-hours and the "
        "amount bounds nothing.",
    ),
    Code(
        "AGC740",
        "no lock",
        "With --locked a command works only with what the spec's lock names, and there is no lock "
        "beside the spec. `agentc lock SPEC` writes one.",
    ),
    Code(
        "AGC741",
        "a lock that cannot be used",
        "The file beside the spec is no lock of a version that this release knows, was cut off, or "
        "was edited into something else. Locks are written by `agentc lock`.",
    ),
    Code(
        "AGC742",
        "something outside of the spec changed",
        "The lock names every model revision, file, template, software stack and backend "
        "version that results depend on, and one of them is another one now. Results made from "
        "here on are not those that the lock was written for. Without --locked this is a warning.",
    ),
    Code(
        "AGC743",
        "jobs are not those of the lock",
        "The keys of jobs follow from the settings of the spec and from what AGC742 reports. Where "
        "that is silent, the spec was edited after its lock was written. Without --locked this is "
        "a warning.",
    ),
    Code(
        "AGC744",
        "a revision that cannot be resolved",
        "`agentc lock` and the first `agentc run` ask the model hub which commit a revision is. "
        "The hub knows no such repository or revision, or it cannot be reached and no lock pins "
        "the revision yet.",
        no_example="It takes a model hub that says no, or none that can be reached.",
    ),
    Code(
        "AGC745",
        "a branch or tag that is not pinned",
        "A branch or a tag of a model hub may mean another commit tomorrow. The first `agentc run` "
        "requests its commit from the hub and writes it to the lock beside the spec, as `agentc "
        "lock` does. From then on every command uses that commit. `agentc bundle` and --locked "
        "take no revision without a pin.",
    ),
    Code(
        "AGC760",
        "a tracker that is not there",
        "`track:` and `--track` name trackers: sinks that a run's curves and results are written "
        "to, beside the store. Installed packages announce them.",
    ),
    Code(
        "AGC761",
        "a tracker cannot work with these settings",
        "The settings of a tracker contradict each other, or one of them needs another. Nothing "
        "was run: a tracker that fails later ends no run, and would leave its curves out.",
    ),
    Code(
        "AGC790",
        "rounds that stop by no measure",
        "`until.stage` is a stage of its own repeat, whose `metric` is looked at after each round. "
        "What is outside of the rounds distinguishes none of them from another.",
    ),
    Code(
        "AGC791",
        "a rule that ends no rounds, or all",
        "`until` says `reaches`, a value of the metric; or `no_gain_for`, N rounds in a row "
        "that are not better than the best before them by more than `min_gain`; or both, and the "
        "first that holds ends the rounds. docs/sweeps.md has examples.",
    ),
    Code(
        "AGC792",
        "a round that may not be there",
        "Where `until` may end a repeat before `n`, later stages can mean its first round, its "
        "last, or all that there are: whether there is a third is known only in the run.",
    ),
    Code(
        "AGC793",
        "rounds that end by their number",
        "The rule of `until` holds after the last round at the earliest, so that it ends nothing.",
    ),
    Code(
        "AGC800",
        "a search over no param",
        "`search.over` names the params that `agentc search` chooses values of. They are declared "
        "under `params:`, and no axis of the matrix: a trial runs all cells of that.",
    ),
    Code(
        "AGC801",
        "values that a search cannot try",
        "An axis is a list of values, or the numbers between `low` and `high`; `log` needs numbers "
        "above 0 and goes without `step`. All of them have to be values that the param takes.",
    ),
    Code(
        "AGC802",
        "a search by no measure",
        "`search.stage` is the stage whose `metric` is to be as large, or as small, as can be. In "
        "a repeat it means that of each round, and the last gives the value.",
    ),
    Code(
        "AGC803",
        "nothing to prune by",
        "A pruner looks at a trial after each round. The stage that measures it is in no repeat, "
        "so every trial runs to its end.",
    ),
)
