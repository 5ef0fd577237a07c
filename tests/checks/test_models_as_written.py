"""Models as people write them who come from other trainers: each answer says what to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.model_folder import CONFIG, write_model_folder

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec

SPEC = """
agentc: 1
name: written
models: {base: MODEL}
environments: {craft: {backend: textcraft}}
prompts: {react: {instruction: Craft the goal.}}
stages:
  expert: {kind: expert, split: train, limit: 8}
  sft: {kind: sft, model: STARTS_FROM, data: expert, lr: 1e-5, global_batch: 1, max_length: 64}
"""
NAME = "Qwen/Qwen2.5-0.5B-Instruct"
PINNED = f"{{repo: {NAME}, revision: main}}"
TABLE = load_backends()
KNOWN = "{repo: a/b, revision: 0123456789012345678901234567890123456789}"


@pytest.mark.parametrize(
    ("model", "starts_from", "expected"),
    [
        ("./weights", "base", [("AGC662", "give a directory in Hugging Face layout")]),
        ('"{{ m }}"', "base", [("AGC203", 'write `base: {repo: "{{ m }}"}`')]),
        (f"{{path: {NAME}}}", "base", [("AGC662", "did you mean `repo`?")]),
        (
            f"{{backend: huggingface, name: {NAME}}}",
            "base",
            [("AGC601", f"write `base: {NAME}`, or `{{backend: hf, repo: {NAME}}}`")],
        ),
        (KNOWN, NAME, [("AGC401", f"write `models: {{base: {NAME}}}`")]),
        ("{backend: path}", "base", [("AGC603", "of the Hugging Face hub set `repo`")]),
    ],
)
def test_the_remedy_can_be_copied(
    model: str, starts_from: str, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.replace("MODEL", model).replace("STARTS_FROM", starts_from))
    found = compile_spec(spec, {}, TABLE).diagnostics
    assert [each.code for each in found if each.severity == "error"] == [c for c, _ in expected]
    for each, (_, fix) in zip(found, expected, strict=False):
        assert fix in (each.fix or "")


def written(model: str, folder: Path) -> Path:
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.replace("MODEL", model).replace("STARTS_FROM", "base"))
    return spec


@pytest.mark.parametrize(
    "short", [NAME, f"'{NAME}'", f"{{repo: {NAME}}}", f"{{backend: hf, repo: {NAME}}}", PINNED]
)
def test_a_name_of_the_hub_is_enough(short: str, tmp_path: Path) -> None:
    spec = written(short, tmp_path)
    compiled = compile_spec(spec, {}, TABLE, moving=True)
    (found,) = compiled.diagnostics
    assert (found.severity, found.code) == ("warning", "AGC745")
    assert f"`main` of {NAME} is not pinned" in found.message
    assert found.span is not None
    assert found.span.source.text.split("\n")[found.span.line - 1].startswith("models:")
    assert compiled.plan is not None
    key = compiled.plan.jobs[0].key
    pinned = compile_spec(written(PINNED, tmp_path), {}, TABLE, moving=True).plan
    assert pinned is not None
    assert (key, pinned.jobs[0].draft.config["repo"]) == (pinned.jobs[0].key, NAME)
    (found,) = compile_spec(written(short, tmp_path), {}, TABLE).diagnostics
    assert (found.code, found.fix or "")[0] == "AGC603"


def test_a_folder_beside_the_spec_comes_before_the_hub(tmp_path: Path) -> None:
    write_model_folder(tmp_path / "models" / "llama")
    plans = [
        compile_spec(written(model, tmp_path), {}, TABLE).plan
        for model in ("models/llama", "./models/llama", "{path: models/llama}")
    ]
    assert [plan is not None and plan.jobs[0].draft.backend for plan in plans] == ["model.path"] * 3
    assert len({plan.jobs[0].key for plan in (plans[0], plans[2]) if plan is not None}) == 1


def test_a_scale_changes_a_model_that_is_a_text_or_replaces_it(tmp_path: Path) -> None:
    scales = "scales: {a: {models: {base: {chat_format: chatml}}}, b: {models: {base: some/tiny}}}"
    for model, scale, values in (
        (NAME, "a", {"repo": NAME, "revision": "main", "chat_format": "chatml"}),
        (NAME, "b", {"repo": "some/tiny", "revision": "main"}),
        ("{backend: scratch, layers: 2}", "b", {"repo": "some/tiny", "revision": "main"}),
    ):
        spec = written(model, tmp_path)
        spec.write_text(f"{spec.read_text()}{scales}\n")
        module = compile_spec(spec, {}, TABLE, moving=True, scale=scale).module
        assert module is not None
        fields = module.stages["base"].fields
        assert {name: value.json for name, value in fields.items()} == values


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("models/lama", "models/llama"),
        ("model/llama", "models/llama"),
        ("./models/llama3", "models/llama"),
        ("models/mistral", None),
    ],
)
def test_the_nearest_directory_is_named(path: str, near: str | None, tmp_path: Path) -> None:
    (tmp_path / "models" / "llama").mkdir(parents=True)
    (found,) = compile_spec(written(f"{{path: {path}}}", tmp_path), {}, TABLE).diagnostics
    assert (found.code, found.message) == ("AGC662", f"there is no readable directory {path}")
    said = found.fix or ""
    assert (f"did you mean `path: {near}`?" == said) if near else ("`path:" not in said)


@pytest.mark.parametrize(
    ("setting", "fix"),
    [
        ("torch_dtype: bfloat16", "`dtype: bfloat16` in the stages that train the model"),
        ("dtype: bfloat16", "under the servers that serve it"),
        ("bf16: true", "`dtype: bfloat16` in the stages that train the model"),
        ("attn_implementation: sdpa", "`attention: flash` in the stages that train the model"),
        ("load_in_4bit: true", "`lora: {rank: 16}` in the stages that train the model"),
    ],
)
def test_settings_of_loading_are_of_stages_and_servers(
    setting: str, fix: str, tmp_path: Path
) -> None:
    spec = tmp_path / "spec.yaml"
    model = KNOWN.replace("}", f", {setting}}}")
    spec.write_text(SPEC.replace("MODEL", model).replace("STARTS_FROM", "base"))
    (found,) = compile_spec(spec, {}, TABLE).diagnostics
    assert (found.code, found.expected) == ("AGC201", None)
    assert fix in (found.fix or "")


USED = """
agentc: 1
name: used
models: {base: {path: weights}}
environments: {craft: {backend: textcraft}}
servers: {local: {backend: SERVER}}
prompts: {react: {instruction: Craft the goal.}}
stages:
  expert: {kind: expert, split: train, limit: 8}
"""
STAGES = {
    "sft": """
  sft: {kind: sft, model: base, data: expert, lr: 1e-5, global_batch: 1, max_length: 64}
""",
    "evaluate": "  evaluate: {kind: evaluate, model: base, split: test}\n",
}
LLAVA = {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"],
         "vision_config": {}, "text_config": CONFIG}  # fmt: skip
AWQ = {"quantization_config": {"quant_method": "awq", "bits": 4}}


@pytest.mark.parametrize(
    ("config", "stage", "server", "said"),
    [
        (LLAVA, "sft", "vllm", "a model of pictures and text (LlavaForConditionalGeneration)"),
        (LLAVA, "evaluate", "transformers", "which cannot be served by serve.transformers"),
        (LLAVA, "evaluate", "vllm", None),
        (AWQ, "sft", "vllm", "are quantised (awq), and such weights cannot be trained"),
        (AWQ, "evaluate", "transformers", "(awq), and such weights cannot be served by serve."),
        (AWQ, "evaluate", "vllm", None),
        ({}, "evaluate", "transformers", None),
    ],
)
def test_models_are_used_where_their_weights_can_be_loaded(
    config: dict[str, Any], stage: str, server: str, said: str | None, tmp_path: Path
) -> None:
    write_model_folder(tmp_path / "weights", {**CONFIG, **config})
    spec = tmp_path / "spec.yaml"
    spec.write_text(USED.replace("SERVER", server) + STAGES[stage])
    found = [one for one in compile_spec(spec, {}, TABLE).diagnostics if one.code == "AGC663"]
    assert [said in one.message for one in found if said] == ([True] if said else [])
    assert bool(found) == bool(said)
