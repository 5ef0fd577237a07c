"""Scales change numbers of the same graph; a matrix runs each combination, common stages once."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import Compilation, compile_spec

SPEC = """\
agentc: 1
name: demo
params:
  seed: {type: int, default: 0}
  width: {type: int, default: 64}
  rounds: {type: int, default: 2}
environments:
  craft: {backend: textcraft}
models:
  base: {backend: scratch, hidden_size: "{{ width }}", heads: 2, corpus: expert}
defaults: {max_length: 64, global_batch: 2, lr: 1e-3}
prompts:
  react: {instruction: Act.}
stages:
  expert: {kind: expert, split: train}
  sft: {kind: sft, model: base, data: expert, seed: "{{ seed }}"}
  loop:
    repeat:
      n: "{{ rounds }}"
      carry: {policy: {from: sft, next: tune}}
      stages:
        tune: {kind: sft, model: policy, data: expert}
"""


def compile_text(
    folder: Path, more: str = "", scale: str | None = None, **params: str
) -> Compilation:
    path = folder / "spec.yaml"
    path.write_text(SPEC + more, encoding="utf-8")
    return compile_spec(path, params, load_backends(), scale=scale, every_scale=True)


def codes(compiled: Compilation) -> list[str]:
    return [found.code for found in compiled.diagnostics if found.severity == "error"]


def stage_ids(compiled: Compilation) -> list[str]:
    assert compiled.plan is not None, compiled.diagnostics
    return [job.stage for job in compiled.plan.jobs if job.draft.kind != "report"]


def test_a_scale_changes_values_and_keeps_the_graph(tmp_path: Path) -> None:
    more = "scales:\n  smoke: {params: {width: 32}, stages: {expert: {limit: 3}}}\n"
    paper, smoke = compile_text(tmp_path, more), compile_text(tmp_path, more, "smoke")
    assert stage_ids(paper) == stage_ids(smoke)
    assert smoke.module is not None
    assert smoke.module.scale == "smoke"
    assert smoke.module.stages["base"].fields["hidden_size"].json == 32
    assert smoke.module.stages["expert"].fields["limit"].json == 3
    assert paper.module is not None
    assert paper.module.stages["base"].fields["hidden_size"].json == 64
    # What is given on the command line comes before a scale's default.
    given = compile_text(tmp_path, more, "smoke", width="16")
    assert given.module is not None
    assert given.module.stages["base"].fields["hidden_size"].json == 16


@pytest.mark.parametrize(
    ("overlay", "code"),
    [
        ("{params: {widht: 8}}", "AGC432"),
        ("{stages: {more: {kind: report}}}", "AGC432"),
        ("{stages: {loop: {repeat: {stages: {other: {lr: 1}}}}}}", "AGC432"),
        ("{stage: {expert: {limit: 3}}}", "AGC201"),
        ("{stages: {expert: {limt: 3}}}", "AGC201"),
        ("{stages: {expert: {limit: few}}}", "AGC203"),
        ("3", "AGC203"),
    ],
)
def test_every_scale_is_checked_before_it_is_chosen(
    tmp_path: Path, overlay: str, code: str
) -> None:
    assert code in codes(compile_text(tmp_path, f"scales:\n  smoke: {overlay}\n"))


def test_a_slip_in_a_scale_may_mean_what_the_spec_sets_already(tmp_path: Path) -> None:
    spec = "sft: {kind: sft, placement: {gpus: 0},"
    path = tmp_path / "spec.yaml"
    more = "scales:\n  smoke: {stages: {sft: {placement: {pus: 2}}}}\n"
    path.write_text(SPEC.replace("sft: {kind: sft,", spec) + more, encoding="utf-8")
    compiled = compile_spec(path, {}, load_backends(), scale="smoke")
    fixes = [found.fix for found in compiled.diagnostics if found.code == "AGC201"]
    assert fixes == ["did you mean `cpus` or `gpus`?"]


def test_an_unknown_scale(tmp_path: Path) -> None:
    compiled = compile_text(tmp_path, "scales:\n  smoke: {}\n", "smok")
    assert codes(compiled) == ["AGC431"]
    assert compiled.diagnostics[0].fix == "did you mean `smoke`?"


def test_cells_share_what_does_not_depend_on_them(tmp_path: Path) -> None:
    compiled = compile_text(tmp_path, "matrix: {seed: [0, 1], width: [32, 16]}\n")
    assert stage_ids(compiled) == [
        "expert",
        *(f"base@width={w}" for w in (32, 16)),
        *(f"sft@seed={s},width={w}" for s in (0, 1) for w in (32, 16)),
        *(f"loop.1.tune@seed={s},width={w}" for s in (0, 1) for w in (32, 16)),
        *(f"loop.2.tune@seed={s},width={w}" for s in (0, 1) for w in (32, 16)),
    ]
    assert compiled.module is not None
    stage = compiled.module.stages["loop.2.tune@seed=1,width=32"]
    assert stage.inputs["model"] == ("loop.1.tune@seed=1,width=32",)
    assert (stage.base, stage.cell) == ("loop.2.tune", {"seed": 1, "width": 32})


def test_a_cell_has_the_keys_of_a_run_of_its_own(tmp_path: Path) -> None:
    """What a single run has made is there for the sweep, and the other way round."""
    sweep = compile_text(tmp_path, "matrix: {seed: [0, 1]}\n")
    single = compile_text(tmp_path, seed="1")
    assert sweep.plan is not None
    assert single.plan is not None
    keys = {job.id: job.key for job in sweep.plan.jobs}
    for job in single.plan.jobs:
        if job.draft.kind != "report":
            assert keys.get(f"{job.id}@seed=1", keys.get(job.id)) == job.key, job.id


def test_a_sweep_over_rounds_shares_the_earlier_ones(tmp_path: Path) -> None:
    compiled = compile_text(tmp_path, "matrix: {rounds: [1, 3]}\n")
    assert stage_ids(compiled) == [
        "expert",
        "base",
        "sft",
        "loop.1.tune",
        "loop.2.tune",
        "loop.3.tune",
    ]


def test_exclude_and_the_command_line(tmp_path: Path) -> None:
    more = "matrix: {seed: [0, 1], width: [32, 16], exclude: [{seed: 1, width: 16}]}\n"
    ids = stage_ids(compile_text(tmp_path, more))
    assert "sft@seed=1,width=32" in ids
    assert "sft@seed=1,width=16" not in ids
    assert "sft@width=32" in stage_ids(compile_text(tmp_path, more, seed="0"))


@pytest.mark.parametrize(
    ("matrix", "code"),
    [
        ("{sead: [0]}", "AGC433"),
        ("{seed: 0}", "AGC203"),
        ("{seed: []}", "AGC203"),
        ("{seed: [0, 0]}", "AGC435"),
        ("{seed: [0, x]}", "AGC307"),
        ("{seed: [0], exclude: [{seed: 0}]}", "AGC434"),
        ("{seed: [0], exclude: [{seed: 3}]}", "AGC433"),
        ("{seed: [0], exclude: [{width: 3}]}", "AGC433"),
        ("{seed: [0], exclude: {seed: 0}}", "AGC203"),
        ('{seed: "{{ range(200) }}", width: "{{ range(1, 200) }}"}', "AGC105"),
        ("[seed]", "AGC203"),
    ],
)
def test_wrong_matrices(tmp_path: Path, matrix: str, code: str) -> None:
    assert code in codes(compile_text(tmp_path, f"matrix: {matrix}\n"))


def test_labels_are_plain_and_distinct(tmp_path: Path) -> None:
    text = SPEC.replace(
        "width: {type: int, default: 64}",
        "width: {type: int, default: 64}\n  chat: {type: str, default: chatml}",
    )
    text = text.replace("heads: 2,", 'heads: 2, chat_format: "{{ chat }}",')
    path = tmp_path / "spec.yaml"
    path.write_text(text + "matrix: {chat: [llama-2, chatml]}\n")
    ids = stage_ids(compile_spec(path, {}, load_backends()))
    assert "base@chat=llama-2" in ids
    assert all(" " not in name and "/" not in name for name in ids)


def test_an_axis_may_depend_on_a_param_that_is_not_swept(tmp_path: Path) -> None:
    more = 'matrix: {seed: "{{ range(rounds) }}"}\n'
    assert "sft@seed=2" in stage_ids(compile_text(tmp_path, more, rounds="3"))
    assert codes(compile_text(tmp_path, 'matrix: {seed: [0], width: "{{ [seed + 32] }}"}\n'))


def test_a_scale_that_takes_another_backend_takes_its_settings_away(tmp_path: Path) -> None:
    """By null, as of models: the other backend has no such key."""
    servers = "servers:\n  local: {backend: vllm, max_model_len: 4096, tensor_parallel: 2}\n"
    scale = "scales:\n  smoke: {{servers: {{local: {{backend: transformers, {}}}}}}}\n"
    taken = scale.format("max_model_len: null, tensor_parallel: null")
    assert codes(compile_text(tmp_path, servers + taken, "smoke")) == []
    assert codes(compile_text(tmp_path, servers + scale.format("max_model_len: 64"))) == ["AGC201"]
    # So does an expression, where it sets a key in some cases only.
    some = "servers:\n  local: {{backend: vllm, max_num_seqs: 4, enforce_eager: {}}}\n"
    assert codes(compile_text(tmp_path, some.format('"{{ none if width == 64 else true }}"'))) == []
    # What no backend has is a slip all the same.
    slip = scale.format("tensor_parallel: null, tensor_paralel: null")
    assert codes(compile_text(tmp_path, servers + slip)) == ["AGC201"]


@pytest.mark.parametrize(
    ("code", "written", "overlay", "neither"),
    [
        (
            "AGC411",
            "  test: {kind: evaluate, model: sft, split: test, server: far}\n"
            "servers: {far: {backend: transformers}, near: {backend: transformers}}\n",
            "test: {server: near}",
            ("server: far}", "server: near}"),
        ),
        (
            "AGC308",
            "  test: {kind: expert, split: test, limit: '{{ rounds }}'}\n",
            "test: {limit: 3}",
            ("'{{ rounds }}'", "8"),
        ),
        (
            "AGC406",
            "  test: {kind: sft, model: base, data: expert}\n",
            "test: {lr: 1e-5}",
            ("test: {kind: sft,", "test: {kind: sft, lr: 1e-4,"),
        ),
    ],
    ids=["server", "param", "default"],
)
def test_what_one_scale_uses_is_unused_at_no_other(
    tmp_path: Path, code: str, written: str, overlay: str, neither: tuple[str, str]
) -> None:
    """Nothing that another scale uses is reported: not by `check`, not at the scale that does not
    use it. What no scale uses is reported once."""
    others = {
        "AGC308": ('"{{ rounds }}"', "2"),
        "AGC406": ("kind: sft,", "kind: sft, lr: 1e-4,"),
    }
    path = tmp_path / "spec.yaml"
    text = SPEC.replace(*others.get(code, ("", ""))) + written

    def found(text: str, scale: str | None = None, *, every: bool = True) -> list[str]:
        path.write_text(f"{text}scales: {{smoke: {{stages: {{{overlay}}}}}}}\n", encoding="utf-8")
        compiled = compile_spec(path, {}, load_backends(), scale=scale, every_scale=every)
        assert compiled.plan is not None, compiled.diagnostics
        return [each.code for each in compiled.diagnostics]

    for scale in (None, "smoke"):
        for every in (True, False):
            kept = [] if every or scale else ["AGC411"] * (code == "AGC411")
            assert found(text, scale, every=every) == kept
    assert found(text.replace(*neither)) == [code]


def test_an_axis_declares_its_param(tmp_path: Path) -> None:
    matrix = "matrix: {seed: [0, 1], rate: [0.1, 1]}\n"
    declared = "params: {seed: {type: int, default: 0}, rate: {type: float, default: 0.1}}\n"
    keys = []
    for params in ("", declared):
        spec = (
            SPEC.partition("params:")[0] + params + "environments:" + SPEC.split("environments:")[1]
        )
        spec = spec.replace('"{{ width }}"', "64").replace('"{{ rounds }}"', "2")
        spec = spec.replace("global_batch: 2,", 'global_batch: 2, weight_decay: "{{ rate }}",')
        (tmp_path / "spec.yaml").write_text(spec + matrix)
        compiled = compile_spec(tmp_path / "spec.yaml", {"rate": "1"}, load_backends())
        assert compiled.diagnostics == ()
        assert compiled.plan is not None
        keys.append({job.id: job.key for job in compiled.plan.jobs})
    assert keys[0] == keys[1]
    assert "sft@seed=1" in keys[0]
