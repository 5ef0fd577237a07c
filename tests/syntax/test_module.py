"""From a spec to the IR: rounds, references, defaults, params and places."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests.support.rounds_spec import HEAD, STAGES, Read, codes, module

from agentc.diagnostics import Sink
from agentc.front.read_module import build_module
from agentc.source.load import load_file


def test_rounds_are_unrolled_in_written_order(read_text: Read) -> None:
    found = module(read_text, HEAD + STAGES)
    assert list(found.stages) == [
        "base",
        "expert",
        "sft",
        *(f"eto.{n}.{s}" for n in (1, 2, 3) for s in ("explore", "pairs", "dpo", "evaluate")),
        "results",
        "last",
    ]
    assert [found.stages[f"eto.{n}.dpo"].round for n in (1, 2, 3)] == [1, 2, 3]
    assert found.stages["eto.2.dpo"].origin.steps == ("round 2 of eto",)
    assert found.stages["sft"].round is None


def test_references(read_text: Read) -> None:
    stages = module(read_text, HEAD + STAGES).stages
    assert stages["eto.1.explore"].inputs == {"model": ("sft",)}
    assert stages["eto.3.explore"].inputs == {"model": ("eto.2.dpo",)}
    assert stages["eto.2.pairs"].inputs == {"expert": ("expert",), "rollouts": ("eto.2.explore",)}
    assert stages["eto.2.dpo"].inputs["model"] == ("eto.1.dpo",)
    assert stages["eto.2.dpo"].inputs["reference"] == ("sft",)
    assert stages["results"].inputs == {
        "of": ("eto.1.evaluate", "eto.2.evaluate", "eto.3.evaluate"),
        "baseline": ("eto.1.evaluate",),
    }
    assert stages["last"].inputs == {"model": ("eto.3.dpo",)}


def test_values_for_each_round(read_text: Read) -> None:
    stages = module(read_text, HEAD + STAGES).stages
    dpo = [stages[f"eto.{n}.dpo"].fields for n in (1, 2, 3)]
    assert [fields["lr"].json for fields in dpo] == [1e-5, 1e-6, 1e-7]
    assert [fields["beta"].json for fields in dpo] == [0.1, 0.5, 0.5]
    columns = [fields["lr"].span.column for fields in dpo if fields["lr"].span]
    assert columns == sorted(set(columns))  # each round points at its own value


def test_a_round_more_changes_no_other(read_text: Read) -> None:
    three = module(read_text, HEAD + STAGES).stages
    text = STAGES.replace("n: 3", "n: 2").replace(", 1e-7]", "]")
    two = module(read_text, HEAD + text).stages
    for name, stage in two.items():
        if name in ("results", "last"):
            continue
        assert dataclasses.replace(stage, spans={}, origin=three[name].origin).inputs == (
            three[name].inputs
        )
        assert {k: v.json for k, v in stage.fields.items()} == {
            k: v.json for k, v in three[name].fields.items()
        }


def test_only_what_is_set_is_in_the_module(read_text: Read) -> None:
    stages = module(read_text, HEAD + STAGES).stages
    assert {k: v.json for k, v in stages["sft"].fields.items()} == {
        "lr": 1e-3,
        "global_batch": 8,
        "max_length": 512,
    }
    assert stages["base"].backend == "model.scratch"
    assert stages["sft"].backend == "auto"


def test_the_only_entry_of_a_section_is_taken(read_text: Read) -> None:
    stages = module(read_text, HEAD + STAGES).stages
    assert stages["expert"].uses == {"environment": "craft"}
    assert stages["last"].uses == {"environment": "craft", "server": "local"}
    assert stages["sft"].uses == {}


def test_places_lead_to_what_was_written(read_text: Read) -> None:
    text = HEAD + STAGES.replace(
        "model: eto.dpo, split: test", "model: eto.dpo, split: test, decode: {temperature: 1}"
    )
    stages = module(read_text, text).stages
    lines = text.split("\n")

    def at(stage: str, path: str) -> str:
        span = stages[stage].spans[path]
        return lines[span.line - 1][span.column - 1 : span.end_column - 1]

    assert at("last", "decode.temperature") == "temperature"
    assert at("last", "model") == "model"
    assert at("last", "model.0") == "eto.dpo"
    assert at("sft", "data.0") == "expert"
    assert at("results", "of.2") == '"eto.*.evaluate"'
    assert at("eto.2.dpo", "lr") == "lr"


def test_defaults_are_taken_by_those_that_have_the_key(read_text: Read) -> None:
    text = HEAD + (
        "defaults:\n"
        "  seed: 7\n"
        "  decode: {max_tokens: 64, temperature: 0.5}\n"
        "  placement: {partition: gpu, gpus: 1}\n"
        "  lr: 1e-9\n"
    )
    stages = STAGES.replace(
        "explore: {", "explore: {decode: {temperature: 1.0}, placement: {gpus: 4}, "
    )
    stages = stages.replace("lr: {per_round: [1e-5, 1e-6, 1e-7]}\n", "seed: 8\n")
    found = module(read_text, text + stages).stages
    assert found["base"].fields["seed"].json == 7
    assert found["eto.1.dpo"].fields["seed"].json == 8
    assert found["eto.1.dpo"].fields["lr"].json == 1e-9
    assert found["sft"].fields["lr"].json == 1e-3
    assert found["eto.1.explore"].fields["decode"].json == {"max_tokens": 64, "temperature": 1.0}
    assert found["last"].fields["decode"].json == {"max_tokens": 64, "temperature": 0.5}
    placement = {k: v.json for k, v in found["eto.1.explore"].placement.items()}
    assert placement == {"gpus": 4, "partition": "gpu"}
    assert found["base"].defaulted == {"seed", "placement.partition", "placement.gpus"}
    assert found["eto.1.explore"].defaulted == {
        *("seed", "decode.max_tokens", "placement.partition"),
    }
    assert "lr" in found["eto.1.dpo"].defaulted
    assert "lr" not in found["sft"].defaulted


def test_a_default_may_name_an_environment(read_text: Read) -> None:
    text = HEAD.replace("servers:", "  other: {backend: textcraft}\nservers:")
    assert codes(read_text, text + STAGES)[0] == "AGC403"
    text += "defaults: {environment: other}\n"
    _, found, sink = read_text(text + STAGES)
    assert [each.code for each in sink.sorted()] == ["AGC411"]  # craft is not used then
    assert found.stages["expert"].uses == {"environment": "other"}


def test_params(read_text: Read) -> None:
    head = HEAD + (
        "params:\n"
        "  rounds: {type: int, default: 2, min: 1, max: 3}\n"
        "  lrs: {type: list, default: [1e-3, 1e-4, 1e-5], min: 0}\n"
        "  half: {type: float, default: '{{ lrs[0] / 2 }}'}\n"
        "  chat: {type: str, default: chatml, choices: [chatml, vicuna]}\n"
        "  tie: {type: bool, default: true}\n"
    )
    text = head.replace(
        "base: {", 'base: {chat_format: "{{ chat }}", tie_embeddings: "{{ tie }}", '
    ) + STAGES.replace("n: 3", 'n: "{{ rounds }}"').replace(
        "{per_round: [1e-5, 1e-6, 1e-7]}", '{per_round: "{{ lrs }}"}'
    ).replace("lr: 1e-3", 'lr: "{{ half }}"')
    found = module(read_text, text)
    assert found.params == {
        "rounds": 2,
        "lrs": [1e-3, 1e-4, 1e-5],
        "half": 5e-4,
        "chat": "chatml",
        "tie": True,
    }
    assert found.stages["sft"].fields["lr"].json == 5e-4
    assert found.stages["base"].fields["tie_embeddings"].json is True
    assert "eto.3.dpo" not in found.stages
    found = module(read_text, text, rounds="3", lrs="0.1, 2e-1,1", tie="false", chat="vicuna")
    assert [found.stages[f"eto.{n}.dpo"].fields["lr"].json for n in (1, 2, 3)] == [0.1, 0.2, 1]
    assert found.stages["base"].fields["tie_embeddings"].json is False
    assert module(read_text, text, lrs="[1e-2, 1, 1]").params["lrs"] == [0.01, 1, 1]
    for wrong in (
        {"rounds": "4"},
        {"rounds": "two"},
        {"rounds": ""},
        {"tie": "yes"},
        {"chat": "llama"},
        {"lrs": "-1"},
        {"lrs": "[1"},
        {"lrs": "[[1]]"},
        {"lrs": "a"},
    ):
        assert codes(read_text, text, **wrong) == ["AGC307"], wrong
    assert codes(read_text, text, lrs="1") == ["AGC408"]


@pytest.mark.parametrize("name", ["round", "self", "not", "min", "none", "str"])
def test_words_of_expressions_cannot_be_params(name: str, read_text: Read) -> None:
    text = f"params:\n  {name}: {{type: int, default: 3}}\n"
    assert "AGC309" in codes(read_text, HEAD + text + STAGES.replace("n: 3", 'n: "{{ self }}"'))


@pytest.mark.parametrize("name", ["context", "block", "loop", "type", "caller", "l_0_seed", "n"])
def test_other_words_can(name: str, read_text: Read) -> None:
    text = f"params:\n  {name}: {{type: int, default: 3}}\n"
    stages = STAGES.replace("n: 3", f'n: "{{{{ {name} }}}}"')
    assert "eto.3.dpo" in module(read_text, HEAD + text + stages).stages


def test_a_carried_stage_may_start_at_a_model_or_another_repeat(read_text: Read) -> None:
    again = STAGES + (
        "  more:\n    repeat:\n      n: 2\n"
        "      carry: {student: {from: eto.2.dpo, next: tune}}\n"
        "      stages:\n"
        "        tune: {kind: sft, model: student, data: expert, lr: 1, global_batch: 1,"
        " max_length: 64}\n"
    )
    stages = module(read_text, HEAD + again).stages
    assert stages["more.1.tune"].inputs["model"] == ("eto.2.dpo",)
    assert stages["more.2.tune"].inputs["model"] == ("more.1.tune",)


def test_an_earlier_round_can_be_named(read_text: Read) -> None:
    text = STAGES.replace("reference: sft", "reference: eto.1.dpo").replace(
        "reference: eto.1.dpo", "reference: \"{{ 'sft' if round == 1 else 'eto.1.dpo' }}\""
    )
    stages = module(read_text, HEAD + text).stages
    assert stages["eto.1.dpo"].inputs["reference"] == ("sft",)
    assert stages["eto.3.dpo"].inputs["reference"] == ("eto.1.dpo",)


def test_options_and_backends(read_text: Read) -> None:
    text = HEAD + STAGES.replace(
        "kind: sft,", "kind: sft, backend: trl, options: {use_liger: true},"
    )
    sft = module(read_text, text).stages["sft"]
    assert sft.backend == "trl.sft"
    assert {k: v.json for k, v in sft.options.items()} == {"use_liger": True}
    assert "options.use_liger" in sft.spans
    # With `auto`, options of any backend of the kind are let through, and typed.
    text = STAGES.replace("kind: dpo\n", "kind: dpo\n          options: {zero_stage: 3}\n")
    assert module(read_text, HEAD + text).stages["eto.1.dpo"].options["zero_stage"].json == 3
    text = text.replace("zero_stage: 3", "zero_stage: 4")
    assert codes(read_text, HEAD + text) == ["AGC205"]


def test_resources_and_prompts(read_text: Read) -> None:
    text = HEAD.replace(
        "transformers}", "vllm, replicas: 2, cache: {gib: 8}, flags: [--x, no]}"
    ) + (
        "prompts:\n"
        "  react:\n"
        "    instruction: |-\n      Act.\n      Now.\n"
        "    acknowledgement: OK\n"
        "    examples:\n"
        "      - - {role: user, content: yes}\n        - {role: assistant, content: 1e3}\n"
    )
    found = module(read_text, text + STAGES)
    server = found.servers["local"]
    assert server.backend == "serve.vllm"
    assert {k: v.json for k, v in server.fields.items()} == {
        "replicas": 2,
        "cache": {"gib": 8},
        "flags": ["--x", "no"],
    }
    assert "cache.gib" in server.spans
    prompt = found.prompts["react"]
    assert prompt.instruction == "Act.\nNow."
    assert prompt.acknowledgement == "OK"
    assert prompt.reply_format == "react"
    assert prompt.examples == ((("user", "yes"), ("assistant", "1e3")),)
    assert found.stages["expert"].uses["prompt"] == "react"


def test_an_instruction_of_the_system_is_its_message(read_text: Read) -> None:
    """`role: system` and `system` are two ways to say one prompt."""
    one, other = (
        module(read_text, HEAD + f"prompts: {{react: {{{text}}}}}\n" + STAGES).prompts["react"]
        for text in ("instruction: Act., role: system", "system: Act., instruction: ''")
    )
    assert (one.system, one.instruction) == (other.system, other.instruction) == ("Act.", "")
    head = HEAD + "prompts: {react: {instruction: Act., role: system, acknowledgement: OK}}\n"
    assert codes(read_text, head + STAGES) == ["AGC213"]


@pytest.mark.parametrize("marker", ["''", "' '", "' OUT:'", "'OUT: '", "'a\n  b'"])
def test_a_marker_is_text_without_space_around_it(read_text: Read, marker: str) -> None:
    head = HEAD + f"prompts: {{react: {{instruction: Act., output_marker: {marker}}}}}\n"
    found = codes(read_text, head + STAGES)
    assert found == ([] if marker.startswith("'a") else ["AGC210"])


def test_texts_stay_as_written(read_text: Read) -> None:
    text = (
        HEAD
        + STAGES
        + (
            "paper: {title: No, year: 2024, authors: [On, 1e3]}\n"
            "discrepancies:\n"
            "  - {what: lr, paper: 1e-5, code: 2e-5, chosen: no}\n"
        )
    )
    found = module(read_text, text)
    assert found.paper == {"title": "No", "year": 2024, "authors": ["On", "1e3"]}
    assert found.discrepancies == ({"what": "lr", "paper": "1e-5", "code": "2e-5", "chosen": "no"},)


def test_a_partial_module_is_closed(read_text: Read) -> None:
    """A stage with an error takes those that need it along, and nothing else."""
    _, found, sink = read_text(HEAD + STAGES.replace("n: 3", "n: 2").replace("1e-6,", "fast,"))
    assert [each.code for each in sink.sorted()] == ["AGC408", "AGC203"] or sink.has_errors
    assert "eto.1.dpo" in found.stages
    assert "eto.2.dpo" not in found.stages
    assert "last" not in found.stages
    assert "sft" in found.stages
    for stage in found.stages.values():
        for inputs in stage.inputs.values():
            assert set(inputs) <= set(found.stages)


def test_all_errors_come_at_once(read_text: Read) -> None:
    text = (HEAD + STAGES).replace("max_depth: 2", "max_dept: 2")
    text = text.replace("lr: 1e-3", "lr: fast").replace("rollouts: explore", "rollouts: explor")
    text = text.replace("model: eto.dpo", "model: eto.9.dpo").replace("0.5 }}", "0.5 + }}")
    assert codes(read_text, text) == ["AGC201", "AGC203", "AGC401", "AGC302", "AGC412"]


def test_a_broken_stage_does_not_make_its_users_wrong(read_text: Read) -> None:
    assert codes(read_text, HEAD + STAGES.replace("kind: sft,", "kind: sftt,")) == ["AGC209"]
    assert codes(read_text, HEAD + STAGES.replace("kind: rollout,", "")) == ["AGC202"]


def test_reading_twice_gives_the_same(read_text: Read) -> None:
    first = module(read_text, HEAD + STAGES)
    second = module(read_text, HEAD + STAGES)
    assert dataclasses.asdict(first) == dataclasses.asdict(second)


@pytest.mark.parametrize("spec", ["quickstart.yaml", "eto/textcraft.yaml"])
def test_shipped_specs(spec: str, repository: Path) -> None:
    from agentc.backend_api import load_backends

    sink = Sink()
    path = repository / "specs" / spec
    tree = load_file(path, sink)
    _, found = build_module(*tree, {}, load_backends(), sink, directory=path.parent)
    assert sink.sorted() == ()
    assert found is not None
    assert "eto.2.dpo" in found.stages
