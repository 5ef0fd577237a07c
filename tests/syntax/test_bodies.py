"""Bodies: what stages of rounds and cells have in common is one object; names are apart from it."""

from __future__ import annotations

from dataclasses import replace

from tests.support.rounds_spec import HEAD, STAGES, Read, module

from agentc.ir.module import Body, Module, Stage, verify_module

SWEEP = """\
params: {seed: {type: int, default: 1}}
matrix: {seed: [1, 2]}
"""


def bodies(found: Module, name: str) -> list[Body]:
    """Those of a stage in all rounds."""
    return [stage.body for stage in found.stages.values() if stage.id.endswith(f".{name}")]


def explored(read_text: Read, setting: str) -> list[Stage]:
    """The explorations of three rounds with one more setting."""
    text = STAGES.replace("model: policy, split: train", f"model: policy, {setting}")
    found = module(read_text, HEAD + text).stages
    return [found[f"eto.{number}.explore"] for number in (1, 2, 3)]


def test_rounds_have_one_body(read_text: Read) -> None:
    found = module(read_text, HEAD + STAGES)
    for name in ("explore", "pairs", "evaluate"):
        assert len(set(bodies(found, name))) == 1, name
    assert len(set(bodies(found, "dpo"))) == 3  # each round has its own `lr`


def test_equal_values_are_of_one_body_however_they_were_computed(read_text: Read) -> None:
    stages = explored(read_text, 'split: train, seed: "{{ [4, 5, 4][round - 1] }}"')
    first, second, third = (stage.body for stage in stages)
    assert first is third
    assert second is not first
    assert [stage.fields["seed"].json for stage in stages] == [4, 5, 4]


def test_values_that_are_written_differently_are_of_two(read_text: Read) -> None:
    """1 and 1.0 are equal in Python, and two texts in plan.json."""
    stages = explored(
        read_text, 'split: train, decode: {temperature: "{{ [1, 1.0, 1][round - 1] }}"}'
    )
    assert stages[0].body is stages[2].body
    assert stages[0].body is not stages[1].body
    assert [repr(stage.fields["decode"].json) for stage in stages] == [
        "{'temperature': 1}",
        "{'temperature': 1.0}",
        "{'temperature': 1}",
    ]


def test_what_is_the_same_input_belongs_to_the_body(read_text: Read) -> None:
    """A policy that is its own reference is trained in another way than one that is not."""
    text = STAGES.replace("{per_round: [1e-5, 1e-6, 1e-7]}", "1e-5").replace(
        "0.1 if round == 1 else 0.5", "0.5"
    )
    found = module(read_text, HEAD + text)
    first, second, third = bodies(found, "dpo")
    assert first.shape == {"model": (0,), "reference": (0,), "data": (1,)}
    assert second.shape == {"model": (0,), "reference": (1,), "data": (2,)}
    assert first is not second
    assert second is third


def test_cells_share_what_does_not_depend_on_them(read_text: Read) -> None:
    text = STAGES.replace("split: train}", 'split: train, seed: "{{ seed }}"}', 1)
    text = text.replace(
        "model: policy, split: train", 'model: policy, split: train, seed: "{{ seed }}"'
    )
    found = module(read_text, HEAD.replace("name: demo\n", "name: demo\n" + SWEEP) + text)
    explore = {stage.body for stage in found.stages.values() if ".explore" in stage.id}
    scores = {stage.body for stage in found.stages.values() if ".evaluate" in stage.id}
    assert len(explore) == 2
    assert len(scores) == 1
    assert sum(".evaluate" in name for name in found.stages) == 6


def test_a_stage_fills_the_placeholders_of_its_body(read_text: Read) -> None:
    stage = module(read_text, HEAD + STAGES).stages["eto.2.dpo"]
    slots = stage.body.slots()
    assert not {name for names in slots.values() for name in names} & set(stage.parents())
    assert stage.fill(slots) == stage.inputs
    own = {"a": (*slots["data"], ":part"), "b": slots["model"]}
    assert stage.fill(own) == {"a": ("eto.2.pairs", ":part"), "b": ("eto.1.dpo",)}


def test_a_body_without_the_shape_of_the_inputs_is_found(read_text: Read) -> None:
    found = module(read_text, HEAD + STAGES)
    assert verify_module(found) == []
    stage = found.stages["eto.2.pairs"]
    inputs = {**stage.inputs, "rollouts": ("eto.1.explore", "eto.2.explore")}
    for changed, faults in ((replace(stage, inputs=inputs), 1), (stage.with_inputs(inputs), 0)):
        stages = {**found.stages, stage.id: changed}
        assert len(verify_module(replace(found, stages=stages))) == faults
