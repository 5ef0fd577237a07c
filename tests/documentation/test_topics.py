"""`agentc explain NAME`: every name of the language is explained, and examples compile."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.support.model_folder import write_model_folder

from agentc.backend_api import EnvironmentBackend, StageBackend, entry_fields, load_backends
from agentc.cli import main
from agentc.diagnostics.synonyms import SYNONYMS
from agentc.exit_codes import EXIT_NOT_FOUND
from agentc.kinds import KINDS, MODEL_KIND
from agentc.kinds.metric_names import METRIC_NAMES
from agentc.reference.examples import (
    SCAFFOLD,
    backend_example,
    entry_example,
    example_with,
    option_example,
)
from agentc.reference.terms import TERMS
from agentc.reference.topics import LISTS, names, topics

TABLE = load_backends()


def explained(name: str) -> str:
    return "\n".join(line for topic in topics(name, TABLE) for line in topic.lines)


def test_settings_fit_the_terminal() -> None:
    topic = next(each for each in topics("vllm", TABLE, 80) if each.name == "serve.vllm")
    (start,) = (n for n, line in enumerate(topic.lines) if "tool_parser " in line)
    assert max(map(len, topic.lines)) <= 80
    words = " ".join(" ".join(topic.lines[start : start + 6]).split())
    assert "none or hermes or llama3_json or mistral or qwen3_coder or deepseek_v3" in words


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


def write_files(folder: Path) -> None:
    """The files that examples name."""
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    (folder / "conversations.jsonl").write_text(json.dumps({"messages": turns}) + "\n")
    for name in ("filter.py", "agent.py"):
        (folder / name).write_text("print()\n")


def test_examples_of_all_backends_compile_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stages that examples name are those of the default backends."""
    spec = yaml.safe_load(SCAFFOLD)
    spec["defaults"] = {"server": "local", "environment": "world"}
    for kind in KINDS:
        if kind.example and kind.name != MODEL_KIND:
            spec["stages"][kind.name] = yaml.safe_load(kind.example)
    for backend in TABLE:
        name, section = backend.id.replace(".", "_"), "stages"
        if isinstance(backend, StageBackend):
            text = backend_example(backend)
            section = "models" if backend.kind == MODEL_KIND else "stages"
        else:
            text = entry_example(backend)
            section = "environments" if isinstance(backend, EnvironmentBackend) else "servers"
        if text is not None:
            (spec[section][name],) = yaml.safe_load(text)[section].values()
    write_model_folder(tmp_path / "weights")
    write_files(tmp_path)
    (tmp_path / "examples.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    code = main(["check", str(tmp_path / "examples.yaml")])
    assert code == 0, capsys.readouterr()
    without = {backend.id for backend in TABLE if isinstance(backend, StageBackend)}
    without -= {name for name in without if backend_example(TABLE.backends[name])}  # type: ignore[arg-type]
    assert without == {"verdicts.claims", "report.html"}


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
    assert [word for word in SYNONYMS if not explained(word)] == []
    assert explained("learning_rate").startswith("`learning_rate` is called `lr` here")
    assert "sft.lora.rank" in explained("lora_r")
    assert "kind: rank" not in explained("lora_r")
    for method, word in (("rft", "min_reward"), ("grpo", "online_rl"), ("lora", "rank: 16")):
        assert word in explained(method)
    assert "`beta: {per_round: [0.1, 0.5]}`" in explained("dpo.beta")
    assert "sft.lr" in explained("learning_rate")
    assert explained("within noise").startswith("`within noise` is called `inconclusive` here")
    for word in ("warmup", "warmup_steps"):
        assert "write `warmup_ratio: SHARE`, the share of all steps" in explained(word)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "dpo"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("kind: dpo\n")
    assert "  beta " in out
    assert re.search(r"^  lr +Peak learning rate \(number > 0, required\)$", out, re.MULTILINE)
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


def test_terms_lead_to_names_that_are_explained() -> None:
    assert len(TERMS) > 40
    assert [other for term in TERMS.values() for other in term.see if not explained(other)] == []
    assert "matrix: {seed: [0, 1]}" in explained("cell")
    assert "beta: {per_round: [0.1, 0.5]}" in explained("per_round")
    assert "settings of an entry" in explained("claims")
    assert explained("claims.above").startswith("claims.above: number")


OPTIONS_WITHOUT_EXAMPLE = {
    ("benchmark.lm_eval", "api"),  # decided by the tasks
    ("evaluate.agent", "same_state"),
    ("rollout.react", "same_state"),  # of environments without snapshots
    ("evaluate.command", "command"),
    ("rollout.command", "command"),  # in place of `run`, which the example has
    ("evaluate.command", "requirements"),
    ("rollout.command", "requirements"),  # a file with a lock
    *(("measure.episodes", name) for name in
      ("action_span", "action_space", "no_action", "reply_format")),  # of commands' episodes
    ("report.html", "trajectories"),
}  # fmt: skip


def test_options_of_backends_have_examples_that_they_read() -> None:
    lacking = {
        (backend.id, option.name)
        for backend in TABLE
        if isinstance(backend, StageBackend)
        for option in backend.options
        if option_example(backend, option.name) is None
    }
    assert lacking - OPTIONS_WITHOUT_EXAMPLE == set()
    assert "    options: {group: " in explained("trl.online_rl.group")


def test_most_settings_of_entries_have_examples_that_are_read() -> None:
    """The others name files, or a program in the place of an address."""
    found = [
        entry_example(backend, setting.name) is not None
        for backend in (*TABLE.environments(), *TABLE.servers())
        for setting in entry_fields(backend)
    ]
    assert sum(found) / len(found) > 0.85
    assert "  mine: {backend: textcraft, max_depth: 2" in explained("textcraft.max_depth")


def test_a_spec_is_explained_with_its_discrepancies(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = repository / "specs" / "eto" / "webshop.yaml"
    assert main(["explain", str(spec)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("eto-webshop\n")
    assert "GPUs: 4 at most in one job" in shown
    assert "from the hub: meta-llama/Llama-2-7b-chat-hf at f5db02db7245" in shown
    assert "agentc data fetch webshop-1000" in shown
    assert "14 discrepancies of paper and code" in shown
    assert "     code: 0.1 in round 1, 0.5 afterwards\n" in shown
    assert main(["explain", str(spec), "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["discrepancies"]) == 14
