"""A misspelt key of any kind of stage, with one letter less or two swapped, gives one message at
its place, which offers the key: nothing that follows from it is reported beside it, neither that
the key is missing nor what its value would mean.

`test_typos.py` does the same with the keys of the shipped specs, below stages too.
"""

from __future__ import annotations

from itertools import zip_longest

import pytest

from agentc.backend_api import load_backends
from agentc.diagnostics import Diagnostic, Sink, render_text
from agentc.diagnostics.diagnostic import Source
from agentc.front.read_module import build_module
from agentc.kinds import KINDS, MODEL_KIND, REPORT_KIND, VERDICTS_KIND, Kind
from agentc.kinds.artifacts import CHECKPOINT
from agentc.kinds.field import Field
from agentc.schema.language import STAGE_KEYS, USE_KEYS
from agentc.source.load import load_text

_HEAD = """\
agentc: 1
name: demo
environments: {craft: {backend: textcraft}}
servers: {local: {backend: transformers}}
prompts: {react: {instruction: Act.}}
models: {base: {backend: scratch, corpus: a_expert}}
stages:
"""
_ADDED = (MODEL_KIND, VERDICTS_KIND, REPORT_KIND)


def _value(field: Field) -> str:
    """A value that a field takes."""
    schema = field.schema
    if "enum" in schema:
        assert isinstance(schema["enum"], list)
        return str(schema["enum"][0])
    kinds = schema.get("type")
    first = kinds[0] if isinstance(kinds, list) else kinds
    whole = {"integer": str(schema.get("minimum", 1)), "number": "0.5", "boolean": "true"}
    return {**whole, "array": "[run]", "object": "{}"}.get(str(first), "test")


def _stage(kind: Kind, names: dict[str, str]) -> dict[str, str]:
    """The keys that a stage of a kind needs, with values."""
    roles = {
        role.name: next(names[a.name] for a in role.accepts if a.name in names)
        for role in kind.roles
        if not role.optional
    }
    needed = {field.name: _value(field) for field in kind.fields if field.required}
    return {"kind": kind.name, **roles, **needed}


def _stages() -> dict[str, dict[str, str]]:
    made = [kind for kind in KINDS if kind.name not in _ADDED]
    names = {CHECKPOINT.name: "base"}
    for kind in made:
        names.setdefault(kind.produces.name, f"a_{kind.name}")
    return {f"a_{kind.name}": _stage(kind, names) for kind in made}


def _keys(kind: Kind) -> list[str]:
    roles = [role.name for role in kind.roles]
    return [*STAGE_KEYS, *roles, *kind.uses, *(field.name for field in kind.fields)]


def _slips(kind: Kind) -> list[tuple[str, str]]:
    """Keys of more than two letters, each with a letter left out and with two swapped. A slip that
    is a key too is none (`width` less a letter)."""
    keys = _keys(kind)
    known = {*keys, *USE_KEYS}
    found = []
    for key in keys:
        at = len(key) // 2
        swapped = key[: at - 1] + key[at - 1 : at + 1][::-1] + key[at + 1 :]
        for written in dict.fromkeys((key[:at] + key[at + 1 :], swapped)):
            if len(key) > 2 and written not in known:
                found.append((key, written))
    return found


def _diagnose(text: str, scale: str | None = None) -> tuple[Diagnostic, ...]:
    sink = Sink()
    source = Source("spec", text)
    build_module(source, load_text(source, sink), {}, load_backends(), sink, scale=scale)
    return tuple(each for each in sink.sorted() if each.severity == "error")


def _written(stages: dict[str, dict[str, str]]) -> str:
    lines = [
        f"  {name}: {{{', '.join(f'{key}: {value}' for key, value in keys.items())}}}"
        for name, keys in stages.items()
    ]
    return _HEAD + "\n".join(lines) + "\n"


def test_the_stages_are_right() -> None:
    assert render_text(_diagnose(_written(_stages()))) == ""


def test_a_misspelt_key_of_any_kind_gives_one_message() -> None:
    stages = _stages()
    kinds = [kind for kind in KINDS if f"a_{kind.name}" in stages]
    tried = 0
    for together in zip_longest(*(_slips(kind) for kind in kinds)):
        wrong = {name: dict(keys) for name, keys in stages.items()}
        expected = []
        for kind, slip in zip(kinds, together, strict=True):
            if slip is not None:
                key, written = slip
                old = wrong[f"a_{kind.name}"]
                # The value of a key that the stage does not need is no matter: nobody reads it.
                new = {(written if name == key else name): text for name, text in old.items()}
                wrong[f"a_{kind.name}"] = {**new, **({} if key in old else {written: "[{x: y}]"})}
                expected.append((written, key))
        found = _diagnose(_written(wrong))
        said = [(each.message.split("`")[1], each.fix or "") for each in found]
        assert len(said) == len(expected), render_text(found)
        for (written, key), (told, fix) in zip(expected, said, strict=True):
            assert told == written, render_text(found)
            assert f"`{key}`" in fix, f"{written} for {key}: {fix}"
        tried += len(expected)
    assert tried > 500


_SECTIONS = """\
agentc: 1
name: demo
{params}:
  tasks: {{type: int, default: 20}}
environments: {{craft: {{backend: textcraft}}, other: {{backend: textcraft}}}}
servers: {{local: {{backend: transformers}}}}
prompts: {{react: {{instruction: Act.}}}}
{defaults}:
  use: sweet_rl/defaults
  environment: craft
{models}:
  base: {{backend: scratch, corpus: expert}}
stages:
  expert: {{kind: expert, split: train, limit: "{{{{ tasks }}}}"}}
  sft: {{kind: sft, model: base, data: expert, global_batch: 8}}
  explore: {{kind: rollout, model: sft, split: train}}
{discrepancies}: []
{scales}:
  smoke: {{params: {{tasks: 4}}}}
"""
_NAMES = ("params", "defaults", "models", "discrepancies", "scales")


@pytest.mark.parametrize(
    ("section", "written"),
    [*((name, name[1:]) for name in _NAMES), ("models", "model")],
)
def test_a_misspelt_section_is_one_message_where_others_need_it(section: str, written: str) -> None:
    """A scale changes its params, stages take its environment and its `lr`."""
    names = {name: name for name in _NAMES}
    whole = _SECTIONS.format(**names)
    found = _diagnose(whole)
    assert found == (), render_text(found)
    for scale in (None, "smoke"):
        [only] = _diagnose(_SECTIONS.format(**{**names, section: written}), scale)
        assert only.code == "AGC201"
        assert f"`{section}`" in (only.fix or "")


@pytest.mark.parametrize("written", ["backend", "ackend", "bakcend", "backendd"])
def test_a_misspelt_backend_at_a_scale_is_one_message(written: str) -> None:
    """What its settings are is not known, whichever backend the spec has there."""
    text = f"""\
agentc: 1
name: demo
environments: {{craft: {{backend: textcraft}}}}
servers: {{human: {{backend: vllm, max_model_len: 512}}}}
stages:
  expert: {{kind: expert, split: train}}
scales:
  smoke: {{servers: {{human: {{{written}: scripted, max_model_len: 64, rules: [{{reply: Yes}}]}}}}}}
"""
    found = _diagnose(text, "smoke")
    if written == "backend":
        assert found == (), render_text(found)
        return
    [only] = found
    assert (only.code, "`backend`" in (only.fix or "")) == ("AGC201", True)


@pytest.mark.parametrize("written", ["tensor_parallel", "ensor_parallel", "tensor_paralel"])
def test_a_setting_that_a_misspelt_one_leaves_at_a_scale_is_not_reported(written: str) -> None:
    """vLLM's `tensor_parallel` would be removed with its backend."""
    text = f"""\
agentc: 1
name: demo
environments: {{craft: {{backend: textcraft}}}}
servers: {{human: {{backend: vllm, tensor_parallel: 2}}}}
stages:
  expert: {{kind: expert, split: train}}
scales:
  smoke: {{servers: {{human: {{backend: transformers, {written}: null}}}}}}
"""
    found = _diagnose(text, "smoke")
    if written == "tensor_parallel":
        assert found == (), render_text(found)
        return
    [only] = found
    assert only.message.startswith(f"unknown key `{written}`")
