"""AGC606 is said of inputs that a spec names itself, never of those that a template wires."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.model_folder import write_model_folder

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec

SPECS = Path(__file__).parents[2] / "specs"
SPEC = """\
agentc: 1
name: idle
environments:
  craft: {backend: textcraft}
servers:
  local: {backend: scripted}
defaults: {seed: 0}
models:
  base: {backend: path, path: model}
stages:
  searched: {kind: search, model: base, split: train}
  revised:
    use: ./revise.yaml
    PARTS
"""
TEMPLATE = """\
agentc: 1
template: stage
doc: Revision by the policy that searched.
body: {kind: revise, trees: searched, model: base, alpha: 0.5}
"""


def found(folder: Path, more: str) -> list[tuple[str, str]]:
    write_model_folder(folder / "model")
    (folder / "revise.yaml").write_text(TEMPLATE)
    spec = folder / "idle.yaml"
    spec.write_text(SPEC.replace("PARTS", more))
    done = compile_spec(spec, {}, load_backends())
    return [(each.code, each.message) for each in done.diagnostics]


def test_what_a_template_wires_may_be_idle(tmp_path: Path) -> None:
    assert found(tmp_path, "parts: [direct, good]") == []


def test_what_the_spec_names_beside_it_may_not(tmp_path: Path) -> None:
    [(code, message)] = found(tmp_path, "parts: [direct, good]\n    model: base")
    assert code == "AGC606"
    assert "the input `model` of `revised` has no effect: nothing is judged" in message


@pytest.mark.parametrize("name", ["direct_revision", "table3", "table3_webshop"])
def test_shipped_specs_warn_of_nothing_that_a_template_wires(name: str) -> None:
    done = compile_spec(SPECS / "agent_r" / f"{name}.yaml", {}, load_backends())
    assert done.plan is not None
    assert "AGC606" not in {each.code for each in done.diagnostics}


RANKING = """\
agentc: 1
name: ranking
environments:
  city: {backend: guess_my_city}
servers:
  local: {backend: transformers}
  other: {backend: transformers}
prompts:
  react: {instruction: Find the city.}
defaults: {server: local, lr: 1e-4, beta: 0.1, global_batch: 4, max_length: 1024,
           decode: {temperature: 1.0, max_tokens: 16}}
models:
  base: {backend: scratch, corpus: expert, context: 1024}
stages:
  expert: {kind: expert, split: train}
  explore: {kind: rollout, model: base, split: train, attempts: 2, server: other}
  prefs: {kind: pair, rollouts: explore, sources: self}
  critic: {kind: critic, model: base, data: prefs, parameterisation: value_head}
  turns: {kind: sample, model: base, rollouts: explore}
  ranked: {kind: rank, OWN candidates: turns, critic: critic}
"""


@pytest.mark.parametrize(("own", "expected"), [("", []), ("server: local,", ["AGC606"])])
def test_a_server_of_the_defaults_is_no_wish_of_each_stage(
    own: str, expected: list[str], tmp_path: Path
) -> None:
    """A critic with a head is loaded by the program that ranks."""
    spec = tmp_path / "ranking.yaml"
    spec.write_text(RANKING.replace("OWN", f"backend: value_head, {own}"), encoding="utf-8")
    assert [each.code for each in compile_spec(spec, {}, load_backends()).diagnostics] == expected
