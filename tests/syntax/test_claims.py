"""Claims of a spec as they are bound, and what they do and do not change in a plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import Compilation, compile_spec
from agentc.diagnostics.diagnostic import Diagnostic
from agentc.plan.job import Plan

SPEC = """\
agentc: 1
name: claimed
params:
  printed: {type: float, default: 67.4}
environments:
  craft: {backend: textcraft}
servers:
  local: {backend: transformers}
prompts:
  react: {instruction: Act.}
models:
  base: {backend: scratch, corpus: expert}
stages:
  expert: {kind: expert, split: train}
  before: {kind: evaluate, model: base, split: test}
  rounds:
    repeat:
      n: 2
      stages:
        scores: {kind: evaluate, model: base, split: test, seed: "{{ round }}"}
"""
CLAIMS = """\
claims:
  main:
    what: ETO on TextCraft
    table: Table 2
    stage: rounds.scores
    metric: success
    value: "{{ printed }}"
    percent: true
    tolerance: 5
    n: 200
    seeds: 3
    gate: true
  gain: {what: gain, stage: rounds.scores, difference_from: before, above: 0}
"""


def errors_in(folder: Path, text: str) -> list[Diagnostic]:
    spec = folder / "spec.yaml"
    spec.write_text(text)
    found = compile_spec(spec, {}, load_backends()).diagnostics
    return [each for each in found if each.severity == "error"]


def compiled(folder: Path, text: str, **params: str) -> Compilation:
    spec = folder / "spec.yaml"
    spec.write_text(text)
    found = compile_spec(spec, params, load_backends())
    assert [each.message for each in found.diagnostics if each.severity == "error"] == []
    return found


def plan_of(folder: Path, text: str, **params: str) -> Plan:
    plan = compiled(folder, text, **params).plan
    assert plan is not None
    return plan


def test_numbers_are_bound_in_units_of_the_metric(tmp_path: Path) -> None:
    module = compiled(tmp_path, SPEC + CLAIMS, printed="70").module
    assert module is not None
    main, gain = module.claims
    assert main.stage == "rounds.2.scores"
    assert (main.value, main.tolerance, main.percent) == (pytest.approx(0.7), 0.05, True)
    assert (main.metric, main.n, main.seeds, main.gate) == ("success", 200, 3, True)
    assert main.bounds == (0.0, 1.0)
    assert (gain.relation, gain.value, gain.bounds) == ("above", 0.0, (-1.0, 1.0))
    assert gain.stages == ("rounds.2.scores", "before")
    assert gain.origin.span.line == SPEC.count("\n") + 13


def test_claims_change_no_key_but_those_of_judge_and_report(tmp_path: Path) -> None:
    without = {job.id: job.key for job in plan_of(tmp_path, SPEC).jobs}
    found = {job.id: job.key for job in plan_of(tmp_path, SPEC + CLAIMS).jobs}
    assert set(found) - set(without) == {"claims"}
    assert {name for name, key in without.items() if found[name] != key} == {"report"}


@pytest.mark.parametrize(
    ("environment", "needs", "unmet"),
    [
        ("", "environment.recipes: {not: invented}", None),
        (", recipes: invented", "environment.recipes: {not: invented}",
         "`recipes` of `craft` is `invented`, and the claim needs another value"),
        ("", "environment.max_depth: 3",
         "`max_depth` of `craft` is not set, and the claim needs `3`"),
        (", max_depth: 3", "environment.max_depth: 3", None),
        (", max_depth: 3", "environment.max_depth: {not: null}", None),
        ("", "environment.max_depth: {not: null}",
         "`max_depth` of `craft` is not set, and the claim needs another value"),
        ("", "params.printed: 67.4", None),
        ("", "params.printed: 70, environment.recipes: invented",
         "the param `printed` is `67.4`, and the claim needs `70`; `recipes` of `craft` is "
         "`minecraft`, and the claim needs `invented`"),
    ],
)  # fmt: skip
def test_a_claim_needs_settings_in_effect(
    tmp_path: Path, environment: str, needs: str, unmet: str | None
) -> None:
    """By default or as the spec has them. What holds changes no key."""
    spec = SPEC.replace("backend: textcraft}", f"backend: textcraft{environment}}}")
    plain = plan_of(tmp_path, spec + CLAIMS).by_id()
    with_needs = spec + CLAIMS.replace(
        "    gate: true\n", f"    needs: {{{needs}}}\n    gate: true\n"
    )
    module = compiled(tmp_path, with_needs).module
    assert module is not None
    assert [claim.unmet for claim in module.claims] == [unmet, None]
    plan = plan_of(tmp_path, with_needs).by_id()
    assert (plan["claims"].key == plain["claims"].key) == (unmet is None)
    assert plan["before"].key == plain["before"].key


def test_the_claim_is_part_of_the_verdicts_key(tmp_path: Path) -> None:
    keys = set()
    for printed in ("67.4", "67.5"):
        plan = plan_of(tmp_path, SPEC + CLAIMS, printed=printed)
        keys.add(plan.by_id()["claims"].key)
    assert len(keys) == 2


def test_a_judge_of_the_spec_sets_how_claims_are_judged(tmp_path: Path) -> None:
    text = SPEC + "  verdicts: {kind: verdicts, confidence: 0.99}\n" + CLAIMS
    plan = plan_of(tmp_path, text)
    judge = plan.by_id()["verdicts"]
    assert judge.draft.config["confidence"] == 0.99
    assert judge.inputs["of"] == ("rounds.2.scores", "before")
    assert [each.draft.kind for each in plan.jobs].count("verdicts") == 1


def test_a_stage_named_claims_does_not_clash(tmp_path: Path) -> None:
    text = SPEC + "  claims: {kind: compare, of: [before]}\n" + CLAIMS
    jobs = plan_of(tmp_path, text).by_id()
    assert jobs["claims"].draft.kind == "compare"
    assert jobs["final_claims"].draft.kind == "verdicts"


MEASURED = """\
  sampled: {kind: evaluate, model: base, split: test, attempts: 10, best_of: [10], loops: {}}
  trees: {kind: search, model: base, split: train, depth: 12}
  fixed: {kind: revise, trees: trees, model: base, alpha: 0.5}
claims:
  best: {what: w, stage: sampled, metric: best_of(10), value: 63.8, percent: true, n: 200}
  over:
    what: best of ten over the mean of ten
    stage: sampled
    metric: best_of(10)
    difference_from: sampled
    difference_metric: reward
    above: 0
  loops: {what: w, stage: sampled, metric: loops, below: 0.5}
  length: {what: w, stage: fixed, metric: revision_length, value: 8.3, n: 200}
"""


def test_measures_are_bound_with_what_their_tasks_can_have(tmp_path: Path) -> None:
    module = compiled(tmp_path, SPEC + MEASURED).module
    assert module is not None
    best, over, loops, length = module.claims
    assert (best.metric, best.bounds) == ("best_of(10)", (0.0, 1.0))
    assert (over.difference_from, over.difference_metric) == ("sampled", "reward")
    assert over.record()["difference_metric"] == "reward"
    assert "difference_metric" not in loops.record(), "keys of claims without it are older"
    # A path has one action more than the tree is deep.
    assert (length.stage, length.bounds) == ("fixed", (1.0, 13.0))


WINS = """\
claims:
  wins: {what: w, stage: rounds.scores, metric: win_rate, difference_from: before, value: 48.2,
         percent: true, n: 500}
"""


def test_a_win_rate_is_a_share_and_no_difference(tmp_path: Path) -> None:
    module = compiled(tmp_path, SPEC + WINS).module
    assert module is not None
    [wins] = module.claims
    assert (wins.stages, wins.bounds) == (("rounds.2.scores", "before"), (0.0, 1.0))
    assert (wins.value, wins.metric) == (pytest.approx(0.482), "win_rate")


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("difference_from: before, ", "", "AGC441", "nothing without `difference_from`"),
        ("percent", "difference_metric: reward, percent", "AGC441", "of two evaluations already"),
        ("48.2", "-3", "AGC442", "outside the scores"),
        ("before", "rounds.scores", "AGC444", "compared with itself"),
        ("before", "expert", "AGC440", "measures nothing"),
    ],
)
def test_a_win_rate_needs_two_evaluations(
    tmp_path: Path, old: str, new: str, code: str, said: str
) -> None:
    [found] = errors_in(tmp_path, SPEC + WINS.replace(old, new))
    assert found.code == code
    assert said in found.message


def test_a_comparison_counts_wins_where_it_is_asked_to(tmp_path: Path) -> None:
    """The plan states it either way."""
    table = "  table: {kind: compare, of: [before, rounds.1.scores]}\n"
    plain = plan_of(tmp_path, SPEC + table).by_id()["table"]
    asked = plan_of(tmp_path, SPEC + table.replace("]}", "], wins: true}")).by_id()["table"]
    assert plain.draft.config["wins"] is False
    assert asked.draft.config["wins"] is True
    assert asked.key != plain.key


def test_what_is_measured_besides_rewards_changes_no_key_of_the_episodes(tmp_path: Path) -> None:
    plain = MEASURED.replace(", best_of: [10], loops: {}", "").partition("claims:")[0]
    keys = []
    for text in (SPEC + plain, SPEC + MEASURED):
        jobs = plan_of(tmp_path, text).by_id()
        keys.append((jobs["sampled:rollout"].key, jobs["sampled"].key))
    assert keys[0][0] == keys[1][0]
    assert keys[0][1] != keys[1][1]


SWEPT = """\
agentc: 1
name: swept
params:
  seed: {type: int, default: 0}
  split: {type: str, default: test}
matrix:
  seed: [0, 1, 2]
environments:
  craft: {backend: textcraft}
servers:
  local: {backend: transformers}
prompts:
  react: {instruction: Act.}
models:
  base: {backend: scratch, corpus: expert}
  other: {backend: scratch, corpus: expert, seed: "{{ seed }}"}
stages:
  expert: {kind: expert, split: train}
  before: {kind: evaluate, model: base, split: "{{ split }}"}
  after: {kind: evaluate, model: other, split: "{{ split }}"}
claims:
  each: {what: each run, stage: after, above: 0.1}
  all: {what: all runs, stage: after, difference_from: before, above: 0, over: [seed]}
  fixed: {what: untrained, stage: before, below: 0.1, over: [seed]}
"""


def test_a_sweep_has_a_claim_for_each_cell_or_one_over_its_runs(tmp_path: Path) -> None:
    module = compiled(tmp_path, SWEPT).module
    assert module is not None
    claims = {claim.name: claim for claim in module.claims}
    assert set(claims) == {"each@seed=0", "each@seed=1", "each@seed=2", "all", "fixed"}
    assert claims["each@seed=1"].stage == "after@seed=1"
    assert claims["all"].runs == tuple((f"after@seed={n}", "before") for n in range(3))
    assert (claims["all"].stage, claims["all"].difference_from) == ("after", "before")
    assert (claims["fixed"].stage, claims["fixed"].runs) == ("before", ())
    judge = plan_of(tmp_path, SWEPT).by_id()["claims"]
    assert set(judge.inputs["of"]) == {
        "after@seed=0",
        "after@seed=1",
        "after@seed=2",
        "before",
    }


def test_two_swept_params_leave_the_other_in_the_name(tmp_path: Path) -> None:
    text = SWEPT.replace("  seed: [0, 1, 2]\n", "  seed: [0, 1]\n  split: [test, validation]\n")
    module = compiled(tmp_path, text).module
    assert module is not None
    claims = {claim.name: claim for claim in module.claims}
    assert {name for name in claims if name.startswith("all")} == {
        "all@split=test",
        "all@split=validation",
    }
    runs = claims["all@split=validation"].runs
    assert runs == tuple(
        (f"after@seed={n},split=validation", "before@split=validation") for n in range(2)
    )
    assert {name for name in claims if name.startswith("fixed")} == {
        "fixed@split=test",
        "fixed@split=validation",
    }


def test_a_claim_over_what_is_not_swept_is_refused(tmp_path: Path) -> None:
    errors = errors_in(tmp_path, SWEPT.replace("over: [seed]", "over: [sed]", 1))
    assert [(each.code, each.fix) for each in errors] == [("AGC446", "did you mean `seed`?")]


def test_a_reduced_scale_is_told_to_the_judge(tmp_path: Path) -> None:
    text = SPEC + CLAIMS + "scales:\n  smoke:\n    stages: {before: {limit: 4}}\n"
    text += "  paper: {stages: {before: {doc: As printed.}}}\n"
    spec = tmp_path / "spec.yaml"
    spec.write_text(text.replace("difference_from: before, ", ""))
    scales = {}
    for scale in (None, "smoke", "paper"):
        plan = compile_spec(spec, {}, load_backends(), scale=scale).plan
        assert plan is not None
        scales[scale] = plan.by_id()["claims"].draft.config["scale"]
    assert scales == {None: None, "smoke": "smoke", "paper": None}


CURVES = """\
agentc: 1
name: curves
params:
  seed: {type: int, default: 0}
matrix:
  seed: [0, 1, 2]
environments:
  corridor: {backend: corridor}
  other: {backend: corridor, tasks: 7}
servers:
  local: {backend: transformers}
prompts:
  way: {instruction: Act.}
defaults: {environment: corridor, prompt: way, split: train}
models:
  base: {backend: scratch, corpus: expert}
stages:
  expert: {kind: expert}
  archer: {kind: online_rl, algorithm: archer, model: base, iterations: 5, episodes: 8,
           seed: "{{ seed }}"}
  cloned: {kind: online_rl, algorithm: filtered_bc, model: base, iterations: 5, episodes: 8,
           seed: "{{ seed }}"}
  few: {kind: online_rl, algorithm: filtered_bc, model: base, iterations: 5, episodes: 8, limit: 3}
  watched: {kind: online_rl, algorithm: filtered_bc, model: base, iterations: 5, episodes: 8,
            evaluate: {split: test}}
  elsewhere: {kind: online_rl, algorithm: filtered_bc, model: base, iterations: 5, episodes: 8,
              environment: other}
  scores: {kind: evaluate, model: archer, split: test}
claims:
  alone: {what: w, stage: archer, metric: steps_to, reach: 5, below: 1000}
  share: {what: w, stage: archer, metric: trajectories_to, reach: 5, ratio_to: cloned, below: 0.5,
          over: [seed]}
"""


def test_a_claim_about_curves_is_bound_to_runs_and_is_of_a_side(tmp_path: Path) -> None:
    module = compiled(tmp_path, CURVES).module
    assert module is not None
    claims = {claim.name: claim for claim in module.claims}
    assert set(claims) == {"alone@seed=0", "alone@seed=1", "alone@seed=2", "share"}
    share = claims["share"]
    assert share.runs == tuple((f"archer@seed={n}", f"cloned@seed={n}") for n in range(3))
    assert (share.reach, share.metric, share.relation) == (5, "trajectories_to", "below")
    assert share.record()["reach"] == 5
    assert "bounds" not in share.record(), "what is counted has none"
    judge = plan_of(tmp_path, CURVES).by_id()["claims"]
    assert len(judge.inputs["of"]) == 6
    assert claims["alone@seed=1"].stages == ("archer@seed=1",)


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        (" reach: 5, ratio_to: cloned,", " ratio_to: cloned,", "AGC441", "needs `reach`"),
        ("metric: trajectories_to,", "", "AGC441", "`reach` means nothing beside `metric: reward`"),
        ("ratio_to: cl", "difference_from: cl", "AGC441", "`difference_from` means nothing"),
        ("below: 0.5", "value: 0.5, n: 3", "AGC441", "`value` means nothing beside"),
        ("below: 0.5", "below: 1, percent: true", "AGC441", "`percent` means nothing beside"),
        ("reach: 5, ratio", "reach: 50, ratio", "AGC442", "`corridor` gives -64 to 7"),
        ("below: 0.5", "below: -2", "AGC442", "nothing that is counted is below 0"),
        ("ratio_to: cloned", "ratio_to: archer", "AGC444", "they are the same stage"),
        ("ratio_to: cloned", "ratio_to: few", "AGC444", "`limit` is not the same"),
        ("ratio_to: cloned", "ratio_to: watched", "AGC444", "one has evaluations on its curve"),
        ("ratio_to: cloned", "ratio_to: elsewhere", "AGC444", "different environments"),
        ("ratio_to: cloned", "ratio_to: scores", "AGC440", "measures no `trajectories_to`"),
        ("stage: archer, metric: tr", "stage: expert, metric: tr", "AGC440", "measures nothing"),
    ],
)
def test_a_claim_about_curves_says_what_is_reached_by_which_runs(
    tmp_path: Path, old: str, new: str, code: str, said: str
) -> None:
    assert CURVES.count(old) == 1
    text = CURVES.replace(old, new).replace("  seed: [0, 1, 2]", "  seed: [0]")
    [found] = errors_in(tmp_path, text)
    assert found.code == code
    assert said in found.message
    assert found.span is not None


def test_a_run_measures_no_reward_for_a_claim(tmp_path: Path) -> None:
    """Its policy has to be evaluated: the reward of episodes that it trained on is another one."""
    text = CURVES.replace("metric: steps_to, reach: 5, below: 1000", "above: 5")
    errors = errors_in(tmp_path, text)
    assert {each.code for each in errors} == {"AGC440"}
    assert "measures no `reward`" in errors[0].message
    assert errors[0].expected == "one of `scores`"
