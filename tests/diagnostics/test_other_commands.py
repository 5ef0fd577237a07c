"""What all commands have alike: warnings in full in `check` alone, one `--format` and `--json`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from agentc.cli import COMMANDS, GROUPS, command_named, main
from agentc.cli.other_names import FORMER

SPEC = """\
agentc: 1
name: warned
environments: {craft: {backend: textcraft}}
prompts: {react: {instruction: Craft., reply_format: react}}
stages:
  expert: {kind: expert, split: train, limit: 100000}
"""
PROSE = frozenset(
    {"init", "lock", "bundle", "run", "cancel", "serve", "track", "push", "dev", "logs"}
)
"""Commands that do something, or print what has a form of its own."""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "warned.yaml").write_text(SPEC)
    return "warned.yaml"


@pytest.mark.parametrize("command", ["plan", "plan --cost", "graph", "explain", "why"])
def test_a_warning_is_one_line_elsewhere(
    command: str, spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", spec]) == 0
    assert "warning[AGC" in capsys.readouterr().err
    stage = ["expert"] if command in ("explain", "why") else []
    assert main([*command.split(), *stage, spec]) == 0
    said = capsys.readouterr().err
    assert said == f"1 warning; `agentc check {spec}` shows it\n"


def test_errors_are_told_in_full_everywhere(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(spec).write_text(SPEC.replace("split: train", "splits: train"))
    for command in ("plan", "plan --cost", "graph", "explain"):
        stage = ["expert"] if command == "explain" else []
        assert main([*command.split(), *stage, spec]) == 1
        assert "did you mean `split`?" in capsys.readouterr().err, command


def _options(parser: argparse.ArgumentParser) -> set[str]:
    found = set()
    for action in parser._actions:
        found |= set(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            found |= _options(action.choices["ls"])
    return found


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in PROSE])
def test_what_programs_read_has_one_option(command: str) -> None:
    parser = argparse.ArgumentParser()
    command_named(command).configure(parser)
    assert "--format" in _options(parser)
    assert command == "graph" or "--json" in _options(parser)


def test_an_unknown_option_shows_the_usage_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["status", "--jsn"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("usage: agentc status ")
    assert said.endswith("agentc status: error: unrecognized arguments: --jsn\n")


@pytest.mark.parametrize("words", [["store", "--json"], ["software"], ["data"], ["data", "--json"]])
def test_a_command_of_several_actions_lists(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code = main([words[0], "ls", *words[1:]])  # of the store: there is none
    listed = capsys.readouterr()
    assert main(words) == code
    assert capsys.readouterr() == listed
    assert main([words[0], "--help"]) == 0
    assert "ACTION" in capsys.readouterr().out


def test_explain_and_why_as_data(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "expert", spec, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["settings"]["limit"] == {"value": 100000, "from": "warned.yaml:6"}
    assert main(["why", spec, "expert", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "run"
    assert main(["explain", "AGC201", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["code"] == "AGC201"


def test_a_spec_without_scales_is_told_how_one_begins(
    spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", spec, "--scale", "smoke"]) == 1
    told = capsys.readouterr().err
    example = "scales: {smoke: {stages: {expert: {limit: 8}}}}"
    assert f"help: begin one: `{example}`" in told
    with Path(spec).open("a") as file:
        file.write(example + "\n")
    assert main(["plan", spec, "--scale", "smoke"]) == 0


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            ["plan", "--until", "a", "--until", "b"],
            "argument --until: typed twice: first a, then b",
        ),
        (["run", "-j", "2", "--jobs", "3"], "argument -j/--jobs: typed twice: first 2, then 3"),
        (
            ["plan", "-p", "k=1", "-p", "k=2"],
            "argument -p/--param: typed twice: first k=1, then k=2",
        ),
        (
            ["store", "ls", "--sort", "size", "--sort", "time"],
            "argument --sort: typed twice: first",
        ),
    ],
)
def test_of_two_values_of_an_option_none_is_ignored(
    typed: list[str], said: str, spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*typed, *([] if typed[0] == "store" else [spec])]
    assert main(words) == 2
    assert f"agentc {typed[0]}" in (error := capsys.readouterr().err)
    assert said in error


def test_the_same_value_again_is_none(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", spec, "--until", "expert", "--until", "expert"]) == 0
    assert "expert" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["train", "spec.yaml"], "`agentc run SPEC`"),
        (["eval"], "`agentc run SPEC --until STAGE`"),
        (["clean"], "`agentc store gc --delete`"),
        (["ps"], "`agentc status`"),
        (["doctor"], "`agentc plan --preflight SPEC`"),
        (["chek"], "did you mean `check`?"),
        (["help", "chek"], "did you mean `check`?"),
    ],
)
def test_a_command_of_another_tool_names_the_one_that_does_it_here(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"no command `{words[-1] if words[0] == 'help' else words[0]}`" in said
    assert hint in said


@pytest.mark.parametrize("former", FORMER)
def test_a_former_command_is_answered_with_what_replaced_it(
    former: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([former, "spec.yaml"]) == 2
    now = FORMER[former].split()
    assert capsys.readouterr().err == f"agentc {former}: now `agentc {FORMER[former]}`\n"
    assert main(["help", *now]) == 0, "options and actions that help knows"
    assert former not in COMMANDS
    assert now[-1] in capsys.readouterr().out


def test_help_lists_every_command_in_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    at = [shown.index(f"\n{title}:\n") for title in GROUPS]
    assert at == sorted(at)
    for names in GROUPS.values():
        for name in names:
            assert f"\n  {name:<8} {command_named(name).HELP}\n" in shown
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "--offline"], "--offline goes with --preflight"),
        (["plan", "--preflight", "-j", "3"], "-j has no meaning with --preflight"),
        (["plan", "-j", "0"], "expected 1 or more"),
        (["plan", "--preflight", "--cost"], "not allowed with argument"),
        (["plan", "--cost", "--full"], "--full has no meaning with --cost"),
        (["bundle", "-o", "x", "--until", "expert"], "--until goes with --bare"),
        (["bundle", "-o", "x", "--bare", "--with-results"], "--bare writes no results"),
        (["status", "--all-runs"], "by the name of an experiment only"),
        (["report", "--claims", "--format", "csv"], "--claims prints text or json"),
        (["explain", "--list", "kinds"], "--list takes neither a name nor a spec"),
        (["init", "--templates", "eto/sft"], "--templates writes no FILE"),
        (["init", "--from-archer", "x", "--name", "y"], "--name has no meaning"),
    ],
)
def test_what_belongs_to_another_form_of_a_command_is_not_ignored(
    words: list[str], said: str, spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, spec]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["help"], "usage: agentc COMMAND"),
        (["help", "run"], "usage: agentc run "),
        (["help", "store"], "usage: agentc store "),
        (["help", "store", "gc"], "usage: agentc store gc "),
    ],
)
def test_help_shows_a_command_as_git_does(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out.startswith(usage)
