"""What the tab key offers, asked as a shell asks, in this process."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import argcomplete
import pytest

from agentc import cli
from agentc.cli.completing import complete


class _Finder(argcomplete.CompletionFinder):
    def _init_debug_stream(self) -> None:
        """Descriptor 9, which it takes for its own, is pytest's here."""


class Tab:
    """Presses it at the end of a line."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patch = monkeypatch

    def __call__(self, line: str) -> dict[str, str]:
        asked = {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_IFS": "\n",
            "_ARGCOMPLETE_DFS": "\t",
            "_ARGCOMPLETE_SHELL": "fish",
            "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        }
        for name, value in asked.items():
            self.patch.setenv(name, value)
        answer = io.StringIO()
        codes: list[int] = []
        finder = partial(_Finder(), output_stream=answer, exit_method=codes.append)
        complete(cli._parser_of, finder)
        assert codes == [0]
        pairs = [each.partition("\t") for each in answer.getvalue().split("\n") if each]
        return {word: meaning for word, _, meaning in pairs}


@pytest.fixture
def tab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tab:
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    monkeypatch.setenv("AGENTC_STORE", str(tmp_path / "store"))
    return Tab(monkeypatch)


def test_commands_with_what_they_do(tab: Tab) -> None:
    found = tab("agentc ")
    assert set(found) == set(cli.COMMANDS)
    assert found["check"].startswith("say whether specs are right")


def test_options_stand_behind_a_dash_and_choices_behind_their_option(tab: Tab) -> None:
    assert {"--format", "--scale", "-p"} <= set(tab("agentc check -"))
    assert set(tab("agentc check --format ")) == {"text", "json", "sarif"}
    assert set(tab("agentc store ls --k")) == {"--kind"}


def test_specs_and_no_other_files(tab: Tab) -> None:
    assert set(tab("agentc check specs/quick")) == {"specs/quickstart.yaml"}
    assert set(tab("agentc check READ")) == set()


def test_names_of_the_spec_that_was_typed(tab: Tab) -> None:
    line = "agentc run specs/quickstart.yaml"
    params = tab(f"{line} -p ")
    assert set(params) == {"seed=", "rounds="}
    assert params["seed="] == "Seed of weights, shuffling and sampling."
    assert set(tab(f"{line} --scale ")) == {"smoke", "full"}
    stages = tab(f"{line} --until eto.")
    assert stages["eto.2.dpo"] == "dpo"
    assert "eto.3.dpo" not in stages
    assert "eto.3.dpo" in tab(f"{line} -p rounds=3 --until eto.")
    assert "eto.1.dpo" in tab("agentc why specs/quickstart.yaml eto.1")


def test_values_of_a_param_with_few(tab: Tab, tmp_path: Path) -> None:
    spec = tmp_path / "few.yaml"
    spec.write_text(
        "agentc: 1\nname: few\nparams:\n"
        "  loss: {type: string, default: a, choices: [sigmoid, hinge]}\n"
        "  on: {type: bool, default: false}\n  lr: {type: float, default: 1}\n"
    )
    assert set(tab(f"agentc plan {spec} -p loss=")) == {"loss=sigmoid", "loss=hinge"}
    assert set(tab(f"agentc plan {spec} -p on=t")) == {"on=true"}
    assert tab(f"agentc plan {spec} -p lr=") == {}


@pytest.mark.parametrize("text", ["", "params: [", "agentc: 1\nstages: 3\nparams: {a: }\n"])
def test_a_spec_that_is_broken_gives_what_can_be_read(tab: Tab, tmp_path: Path, text: str) -> None:
    spec = tmp_path / "broken.yaml"
    spec.write_text(text)
    for option in ("-p", "--scale", "--until"):
        assert set(tab(f"agentc run {spec} {option} ")) <= {"a="}
    assert tab("agentc run no/such/spec.yaml --until ") == {}


def test_names_that_agentc_has(tab: Tab) -> None:
    assert "AGC602" in tab("agentc explain AGC6")
    assert "eto/rounds" in tab("agentc init --templates eto/")
    assert set(tab("agentc init --from quick")) == {"quickstart"}
    assert "textcraft" in tab("agentc serve text")
    assert "trl.dpo" in tab("agentc dev schema --backend trl.")
    assert "sft" in tab("agentc dev schema --kind s")
    assert tab("agentc report qui") == {}  # a store without runs
