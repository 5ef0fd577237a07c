"""What a name on the command line means among the stages of a plan with rounds and a matrix."""

from __future__ import annotations

import pytest

from agentc.plan.stage_names import cell_in, folded_names, matching_names, nearest

STAGES = (
    "expert",
    "sft@seed=0",
    "sft@seed=1",
    "eto.1.dpo@seed=0",
    "eto.2.dpo@seed=0",
    "eto.1.dpo@seed=1",
    "eto.2.dpo@seed=1",
    "evaluate@lr=0.1,seed=0:rollout",
    "evaluate@lr=0.1,seed=0",
    "evaluate@lr=0.2,seed=0",
)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("expert", ["expert"]),
        ("sft", ["sft@seed=0", "sft@seed=1"]),
        ("sft@seed=1", ["sft@seed=1"]),
        ("sft@seed=2", []),
        ("eto.1.dpo", ["eto.1.dpo@seed=0", "eto.1.dpo@seed=1"]),
        ("eto.2.dpo@seed=1", ["eto.2.dpo@seed=1"]),
        ("eto.dpo@seed=0", ["eto.1.dpo@seed=0", "eto.2.dpo@seed=0"]),
        ("eto.dpo", [f"eto.{n}.dpo@seed={seed}" for seed in (0, 1) for n in (1, 2)]),
        ("eto.2", ["eto.2.dpo@seed=0", "eto.2.dpo@seed=1"]),
        ("eto@seed=1", ["eto.1.dpo@seed=1", "eto.2.dpo@seed=1"]),
        ("evaluate@lr=0.1", ["evaluate@lr=0.1,seed=0:rollout", "evaluate@lr=0.1,seed=0"]),
        ("evaluate:rollout", ["evaluate@lr=0.1,seed=0:rollout"]),
        ("evaluate@lr=0.1,seed=0", ["evaluate@lr=0.1,seed=0"]),
        ("dpo", []),
        ("et", []),
        ("", []),
        (":::", []),
    ],
)  # fmt: skip
def test_what_a_name_means(given: str, meant: list[str]) -> None:
    assert list(matching_names(given, STAGES)) == meant


def test_nearest_names_need_no_cell() -> None:
    assert nearest("stf", STAGES) == "did you mean `sft`?"
    assert nearest("sft@seed=2", STAGES) == "did you mean `sft@seed=0` or `sft@seed=1`?"
    assert nearest("dpo", STAGES) == "did you mean `eto.dpo`?"
    assert nearest("dpo@seed=2", STAGES).startswith("it has ")
    assert nearest("zebra", STAGES).startswith("it has `expert`, `sft`, `eto.1.dpo`, `eto.2.dpo`")


def test_a_stage_in_all_of_its_cells_is_one_name() -> None:
    cells = [f"sft@seed={n}" for n in range(3)]
    known = ["base", *cells, "dpo@seed=0", "dpo@seed=1", *(f"{c}:rollout" for c in cells)]
    assert folded_names(known, known) == [
        "base", "sft@*", "dpo@*", "sft@*:rollout"
    ]  # fmt: skip
    assert folded_names(cells[:2], known) == cells[:2]
    assert folded_names(cells, [*known, "sft@seed=3"]) == cells
    assert [cell_in(name) for name in ("base", "sft@a=1,b=2:rollout")] == ["", "a=1,b=2"]
