"""`agentc explain NAME`: every name of the language is explained, and examples compile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.cli import main
from agentc.exit_codes import EXIT_NOT_FOUND
from agentc.kinds import KINDS
from agentc.kinds.metric_names import METRIC_NAMES
from agentc.reference.examples import SCAFFOLD, example_with
from agentc.reference.topics import LISTS, names, topics

TABLE = load_backends()


def explained(name: str) -> str:
    return "\n".join(line for topic in topics(name, TABLE) for line in topic.lines)


def test_examples_of_all_kinds_compile_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = {kind.name: kind.example for kind in KINDS if kind.example}
    named = f"corpus: expert}}, named: {examples.pop('model')}}}"
    stages = "".join(f"  {kind}: {text}\n" for kind, text in examples.items())
    spec = SCAFFOLD.replace("corpus: expert}}", named) + stages
    (tmp_path / "examples.yaml").write_text(spec)
    (tmp_path / "filter.py").write_text("print()\n")
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    (tmp_path / "conversations.jsonl").write_text(json.dumps({"messages": turns}) + "\n")
    code = main(["check", str(tmp_path / "examples.yaml")])
    assert code == 0, capsys.readouterr()
    assert {kind.name for kind in KINDS if not kind.example} == {"verdicts", "report"}


def test_every_name_is_explained() -> None:
    for name in names(TABLE):
        assert explained(name), name
    for kind in KINDS:
        for field in kind.fields:
            assert field.doc.split()[0] in explained(f"{kind.name}.{field.name}")
    for metric in METRIC_NAMES:
        assert explained(metric).startswith("metric: "), metric


def test_a_setting_says_who_reads_it_and_why_others_do_not() -> None:
    text = explained("online_rl.critic.target_rate")
    assert text.splitlines()[0] == ("online_rl.critic.target_rate: number > 0 <= 1, default 0.1")
    assert "read by: archer.online_rl, chai.online_rl" in text
    assert "not by ppo.online_rl: PPO holds a value of each token to GAE's" in text
    assert "It enters the key" in text
    assert "It enters no key" in explained("sft.micro_batch")


def test_words_of_other_tools_lead_to_ours() -> None:
    assert explained("learning_rate").startswith("`learning_rate` is called `lr` here.")
    assert "sft.lr" in explained("learning_rate")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "dpo"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("kind: dpo\n")
    assert "  beta " in out
    assert "    kind: dpo\n" in out
    assert main(["explain", "dpo.beta", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "dpo.beta"
    assert main(["explain", "dpoo"]) == EXIT_NOT_FOUND
    assert "did you mean `dpo`?" in capsys.readouterr().err


@pytest.mark.parametrize("what", LISTS)
def test_what_is_listed_is_explained(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--list", what, "--format", "json"]) == 0
    listed = [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]
    assert len(listed) > 3
    assert all(explained(name) for name in listed)
    assert main(["explain", "--list", what]) == 0
    assert listed[0] in capsys.readouterr().out.splitlines()[0]


WITHOUT_EXAMPLE = {
    ("critic", "on_empty"),  # `keep_model` is refused
    ("model", "trust_remote_code"),  # no backend reads it where it is false
    ("script", "command"),  # in place of `run`, which the example has
    ("verdicts", "confidence"),
    ("verdicts", "power"),  # settings of the section `claims`
}


def test_settings_have_examples_that_a_backend_reads() -> None:
    paths = {
        (kind.name, path)
        for kind in KINDS
        for field in kind.fields
        for path in (field.name, *(f"{field.name}.{inner.name}" for inner in field.fields))
    }
    lacking = {
        (kind.name, path)
        for kind in KINDS
        for name, path in paths
        if name == kind.name and example_with(kind, path, TABLE) is None
    }
    assert lacking == WITHOUT_EXAMPLE
    template = explained("critic.template")
    assert "    privileged: privileged\n" in template, "what it depends on"
    assert "    critic: {value_target: expectile, expectile: 0.8}" in explained(
        "online_rl.critic.expectile"
    )
