"""What follows from an error is not reported beside it, and what is true in every cell of a sweep
is reported for none of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.model_folder import write_model_folder

from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import compile_spec
from agentc.diagnostics import Diagnostic, render_text

BASE = (Path(__file__).parent / "newcomers" / "base.yaml").read_text(encoding="utf-8")
_MATRIX = ("name: demo", "name: demo\nmatrix: {seed: [0, 1]}")


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


def _found(folder: Path, table: BackendTable, *edits: tuple[str, str]) -> tuple[Diagnostic, ...]:
    text = BASE
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    spec = folder / "spec.yaml"
    spec.write_text(text, encoding="utf-8")
    return compile_spec(spec, {}, table).diagnostics


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("decode: {max_tokens: 64, temperature: 0.7}", "decode: {max_tokens: 64, top_k: 9}", "201"),
        ("    epochs: 3", "    epochs: 3\n    bf16: true", "201"),
        ("{kind: evaluate, model: base", "{kind: evaluate, n: 4, model: base", "201"),
        ("    epochs: 3", "    epochs: 3\n    max_step: 100", "201"),
        ("  max_length: 512", "  max_lenght: 512", "406"),
        ("model: base, split: test", "model: base, split: valid", "504"),
        ("baseline: untrained", "basline: untrained", "201"),
        ("above: 0", "abov: 0", "201"),
    ],
)
def test_an_error_alone(tmp_path: Path, table: BackendTable, old: str, new: str, code: str) -> None:
    found = _found(tmp_path, table, (old, new))
    assert [each.code for each in found] == [f"AGC{code}"], render_text(found)


def test_no_cell_is_named_where_all_have_the_error(tmp_path: Path, table: BackendTable) -> None:
    for edit, code in (
        (("model: base, split: test", "model: base, split: valid"), "AGC504"),
        (("model: eto.dpo\n    split: test", "model: eto.dpo\n    split: valid"), "AGC504"),
        (("    kind: sft\n", "    kind: sft\n    backend: nothing\n"), "AGC601"),
        (("    corpus: expert\n", ""), "AGC603"),
    ):
        found = _found(tmp_path, table, _MATRIX, edit)
        assert [each.code for each in found] == [code], render_text(found)
        assert found[0].steps == ()


def test_the_cells_are_named_where_some_have_the_error(tmp_path: Path, table: BackendTable) -> None:
    wrong = ("epochs: 3", 'epochs: "{{ seed }}"')
    found = _found(tmp_path, table, _MATRIX, wrong)
    assert [(each.code, each.steps) for each in found] == [("AGC205", ("seed = 0",))]


def test_a_default_that_all_stages_override_is_a_warning(
    tmp_path: Path, table: BackendTable
) -> None:
    edits = [("  truncation: drop", "  truncation: drop\n  lr: 1e-5\n  epochs: 1")]
    edits += [("          lr: 1e-6", "          lr: 1e-6\n          epochs: 1")]
    found = _found(tmp_path, table, *edits)
    assert [(each.code, each.severity) for each in found] == [("AGC406", "warning")] * 2


_OWN_SEEDS = """agentc: 1
name: demo
environments: {craft: {backend: textcraft}}
prompts: {react: {instruction: Craft.}}
defaults: {seed: 0}
models: {base: {path: model}}
stages:
  expert: {kind: expert, split: train, limit: 8, seed: 1}
  sft: {kind: sft, model: base, data: expert, lr: 1e-5, global_batch: 1, max_length: 64, seed: 2}
"""


def test_a_default_that_only_a_model_ignores_is_no_reason_for_another_model(
    tmp_path: Path, table: BackendTable
) -> None:
    write_model_folder(tmp_path / "model")
    spec = tmp_path / "spec.yaml"
    spec.write_text(_OWN_SEEDS, encoding="utf-8")
    (found,) = compile_spec(spec, {}, table).diagnostics
    assert (found.code, found.fix, found.notes) == ("AGC602", "remove `seed`", ())


def test_notes_for_readers_stand_everywhere(tmp_path: Path, table: BackendTable) -> None:
    for line in ("    backend: textcraft", "    backend: transformers", "    reply_format: react"):
        assert _found(tmp_path, table, (line, f"{line}\n    doc: as in the paper")) == ()
        (wrong,) = _found(tmp_path, table, (line, f"{line}\n    doc: [1]"))
        assert (wrong.code, wrong.severity) == ("AGC203", "error")


_OFFLINE = """agentc: 1
name: demo
environments: {craft: {backend: textcraft}, other: {backend: textcraft, max_depth: 2}}
servers: {local: {backend: transformers}}
prompts: {react: {instruction: Craft.}}
defaults: {decode: {max_tokens: 64}}
models:
  base: {backend: scratch, architecture: llama, hidden_size: 128, layers: 2, heads: 2, context: 640, vocab_size: 768, chat_format: chatml, corpus: played}
stages:
  played: {kind: script, command: [true], output: trajectories}
  offline: {kind: offline_rl, model: base, data: played, iterations: 1}
  test: {kind: evaluate, model: base, environment: craft, split: test}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [("environment: craft, ", "", "AGC403"), ("model: base, env", "model: bas, env", "AGC401")],
)
def test_a_default_of_stages_that_have_an_error_is_not_without_effect(
    tmp_path: Path, table: BackendTable, old: str, new: str, code: str
) -> None:
    """Whether any stage reads it is not known where stages are left out."""
    spec = tmp_path / "spec.yaml"
    spec.write_text(_OFFLINE, encoding="utf-8")
    found = compile_spec(spec, {}, table).diagnostics
    assert not any(each.severity == "error" for each in found), render_text(found)
    spec.write_text(_OFFLINE.replace(old, new), encoding="utf-8")
    found = compile_spec(spec, {}, table).diagnostics
    errors = [each.code for each in found if each.severity == "error"]
    assert errors == [code], render_text(found)
