"""`agentc check` of several files and folders: what is a spec, and that each is checked as if it
were alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.support.patience import PATIENCE_S

from agentc.cli import main

WRONG = "agentc: 1\nname: demo\nstags: {}\n"
BROKEN = 'agentc: 1\nname: "demo\n'
AS_NOBODY = """
import encodings.utf_8_sig, os  # what is imported later may be root's alone
from agentc.cli.check_several import find_spec_files
from agentc.diagnostics import Sink
if os.getuid() == 0:
    os.setresuid(65534, 65534, 65534)
sink = Sink()
print(len(find_spec_files(["."], sink).specs), *sink.sorted())
"""
TEMPLATE = "agentc: 1\ntemplate: stage\ndoc: A stage.\nbody: {kind: sft}\n"


@pytest.fixture
def folder(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A right spec, one with an error, one that is no YAML, and files that are no specs."""
    for name, text in {
        "wrong.yaml": WRONG,
        "below/broken.yml": BROKEN,
        "below/template.yaml": TEMPLATE,
        "below/notes.txt": WRONG,
        ".hidden/wrong.yaml": WRONG,
        "profile.yaml": "executor: slurm\njobs: 4 # agentc: of a cluster\n",
        "list.yaml": "- agentc: 1\n",
    }.items():
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copy(repository / "specs" / "quickstart.yaml", tmp_path / "mine" / "right.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine"


class Typed:
    """Runs `agentc check`; what it printed is in `out` and `err`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.out = self.err = ""

    def __call__(self, *words: str) -> int:
        code = main(["check", *words])
        self.out, self.err = self.capsys.readouterr()
        return code

    def document(self, *words: str) -> dict[str, Any]:
        self(*words, "--format", "json")
        found: dict[str, Any] = json.loads(self.out)
        return found


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Typed:
    return Typed(capsys)


def test_a_folder_is_the_specs_below_it(folder: Path, check: Typed) -> None:
    assert check("mine") == 1
    assert check.out.splitlines() == [
        "mine/below/broken.yml: 1 error",
        "mine/right.yaml: no errors; 19 stages, 23 jobs",
        "mine/wrong.yaml: 1 error",
        "3 files without a spec passed over",
    ]
    assert "mine/below/broken.yml:2:7: error[AGC103]" in check.err
    assert "mine/wrong.yaml:3:1: error[AGC201]" in check.err
    assert "2 errors; 3 specs checked" in check.err
    assert check.err.count("agentc explain") == 1
    assert check("mine", "-q") == 1
    assert check.out == ""
    assert "AGC103" in check.err


def test_a_spec_counts_once_whatever_words_mean_it(folder: Path, check: Typed) -> None:
    words = ("mine/wrong.yaml", "mine", str(folder / "right.yaml"), "./mine")
    names = [each["spec"] for each in check.document(*words)["specs"]]
    assert names == ["mine/wrong.yaml", "mine/below/broken.yml", "mine/right.yaml"]


def test_the_current_folder_is_one_and_an_empty_word_is_none(
    folder: Path, check: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert check(".") == 1
    assert "\nright.yaml: no errors" in check.out
    for words in (("",), ("", "right.yaml")):
        assert check(*words) == 1
        assert "is a variable of the shell unset?" in check.err


def test_each_is_checked_as_if_it_were_alone(repository: Path, check: Typed) -> None:
    specs = [repository / "specs/archer/webshop.yaml", repository / "specs/agent_r/tiny.yaml"]
    specs += [repository / "specs/agent_r/webshop.yaml"]
    alone = []
    for spec in specs:
        for one in check.document(str(spec))["diagnostics"]:
            alone.append({"spec": str(spec), **one})
    together = check.document(*map(str, specs))
    assert together["diagnostics"] == alone
    assert len({each["spec"] for each in alone}) == 2, "specs that warn, and one that does not"
    assert together["warnings"] == len(alone)
    assert [each["warnings"] for each in together["specs"]] == [3, 0, 1]


def test_a_named_file_is_checked_unless_only_specs_are(folder: Path, check: Typed) -> None:
    named = ("mine/right.yaml", "mine/profile.yaml", "mine/below/template.yaml")
    assert check(*named) == 1
    assert "mine/profile.yaml:" in check.err
    assert "mine/below/template.yaml:" in check.err
    assert check("--only-specs", *named) == 0
    assert check.out.splitlines()[-2:] == [
        "2 files without a spec passed over",
        "1 spec checked: no errors",
    ]
    for one, code in (("mine/profile.yaml", 0), ("mine/below/broken.yml", 1), ("absent.yaml", 1)):
        assert check("--only-specs", one) == code, one


def test_params_and_scales_reach_those_that_have_them(folder: Path, check: Typed) -> None:
    (folder / "wrong.yaml").unlink()
    (folder / "below" / "broken.yml").unlink()
    revision = "0" * 40
    model = f"{{backend: hf, repo: acme/small, revision: {revision!r}}}"
    plain = f"agentc: 1\nname: plain\nmodels:\n  base: {model}\n"
    (folder / "plain.yaml").write_text(plain)
    assert check("mine") == 0, check.err
    assert check("mine", "-p", "rounds=0") == 1, "the value reaches the spec that declares it"
    assert check.document("mine", "-p", "rounds=0")["diagnostics"][-1]["spec"] == "mine/right.yaml"
    assert check("mine", "-p", "rounds=3", "--scale", "smoke") == 0
    assert "right.yaml: no errors; 23 stages, 28 jobs" in check.out, "a round more"
    for words, code in ((("-p", "round=3"), "AGC306"), (("--scale", "smok"), "AGC431")):
        assert check("mine", *words) == 1
        [found] = [
            one
            for one in check.document("mine", *words)["diagnostics"]
            if one["severity"] == "error"
        ]
        assert (found["code"], found["spec"]) == (code, None)
        assert "none of the 2 specs has" in found["message"]
        assert "did you mean" in found["fix"]
        assert check("mine/right.yaml", *words) == 1, "one spec alone: the same rule"
        assert code in check.err


def test_sarif_is_one_log_with_a_place_for_each(folder: Path, check: Typed) -> None:
    assert check("mine", "--format", "sarif") == 1
    [run] = json.loads(check.out)["runs"]
    places = [
        result["locations"][0]["physicalLocation"]["artifactLocation"] for result in run["results"]
    ]
    assert [unquote(place["uri"]) for place in places] == [
        "mine/below/broken.yml",
        "mine/wrong.yaml",
    ]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["AGC103", "AGC201"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1]


def test_what_has_no_place_is_shown_at_its_spec(folder: Path, check: Typed) -> None:
    assert check("mine/right.yaml", "absent.yaml", "--format", "sarif") == 1
    [run] = json.loads(check.out)["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "absent.yaml", "uriBaseId": "%SRCROOT%"}}


def test_a_folder_that_gives_nothing_is_an_error(folder: Path, check: Typed) -> None:
    (folder.parent / "none").mkdir()
    assert check("none", "mine/right.yaml") == 1
    assert "there is no spec in the folder none" in check.err
    assert "right.yaml: no errors" in check.out, "the others are checked all the same"


def test_a_folder_that_cannot_be_read_is_an_error(folder: Path, repository: Path) -> None:
    """As a user who is not root, whom no permission stops."""
    for each in (folder.parent, folder):
        each.chmod(0o755)
    (folder / "below").chmod(0)
    try:
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    finally:
        (folder / "below").chmod(0o755)
    assert "cannot read the folder ./below: permission denied" in done.stdout, done.stderr
    assert done.stdout.startswith("2 "), "what can be read is found"


def test_what_lies_in_a_folder_neither_hangs_nor_hides(folder: Path, check: Typed) -> None:
    os.mkfifo(folder / "pipe.yaml")
    (folder / "gone.yaml").symlink_to(folder / "nowhere.yaml")
    (folder / "circle").symlink_to(folder)
    (folder / "wide.yaml").write_bytes("agentc: 1\nname: wide\n".encode("utf-16"))
    names = [each["spec"] for each in check.document("mine")["specs"]]
    assert names == [
        "mine/below/broken.yml",
        "mine/gone.yaml",
        "mine/right.yaml",
        "mine/wide.yaml",
        "mine/wrong.yaml",
    ]
    found = {each["spec"]: each["code"] for each in check.document("mine")["diagnostics"]}
    assert found["mine/gone.yaml"] == "AGC101"
    assert found["mine/wide.yaml"] == "AGC102"


def test_one_spec_is_watched_and_no_more(folder: Path, check: Typed) -> None:
    for words in (("mine",), ("mine/right.yaml", "mine/wrong.yaml")):
        assert check("--watch", *words) == 2
        assert "--watch takes one spec" in check.err
