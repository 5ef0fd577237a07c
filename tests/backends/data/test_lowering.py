"""What a spec may name as data, and what enters the key of a data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.cli import main

SPEC = """\
agentc: 1
name: data
stages:
  general:
    kind: dataset
"""


def written(folder: Path, settings: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "talk.json").write_text("[]")
    path = folder / "data.yaml"
    path.write_text(SPEC + "".join(f"    {line}\n" for line in settings.split("; ")))
    return str(path)


def faults(capsys: pytest.CaptureFixture[str], spec: str) -> list[tuple[str, str]]:
    capsys.readouterr()
    main(["check", "--format", "json", spec])
    found = json.loads(capsys.readouterr().out)["diagnostics"]
    return [(one["code"], one["message"]) for one in found if one["severity"] == "error"]


def job(spec: str) -> dict[str, Any]:
    out = Path(spec).parent / "plan"
    assert main(["compile", spec, "-o", str(out)]) == 0
    jobs = json.loads((out / "plan.json").read_text("utf-8"))["jobs"]
    found: dict[str, Any] = next(one for one in jobs if one["id"] == "general")
    return found


PATH = "backend: path; path: talk.json"
HUB = f"backend: hf; repo: some/data; revision: {'0123456789' * 4}; file: a/b.json"


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ("backend: path; path: ../talk.json", "AGC123", "outside of the spec's folder"),
        ("backend: path; path: none.json", "AGC603", "no readable file none.json"),
        ("backend: path; path: .", "AGC603", "is a directory, and dataset.path reads one file"),
        ("backend: path; path: ..", "AGC123", "outside of the spec's folder"),
        ("backend: path", "AGC603", "needs `path`"),
        (f"{PATH}; seed: 1", "AGC602", "nothing is drawn without `limit`"),
        (f"{PATH}; repo: some/data", "AGC602", "`repo` has no effect"),
        (HUB.replace("a/b.json", "../b.json"), "AGC603", "is no path inside of a repository"),
        (HUB.replace("a/b.json", "/b.json"), "AGC603", "is no path inside of a repository"),
        (HUB.replace("0123456789" * 4, "main"), "AGC210", "revision"),
    ],
)
def test_what_cannot_be_had_is_refused(
    settings: str, code: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "talk.json").write_text("[]")
    found = faults(capsys, written(tmp_path / "spec", settings))
    assert [one for one, _ in found] == [code]
    assert said in found[0][1]


def test_the_content_of_the_file_is_the_key(tmp_path: Path) -> None:
    spec = written(tmp_path, PATH)
    before = job(spec)
    (tmp_path / "talk.json").write_text("[1]")
    assert job(spec)["key"] != before["key"]
    (tmp_path / "talk.json").write_text("[]")
    assert job(spec)["key"] == before["key"]


def test_a_hub_s_token_is_a_name_and_no_part_of_the_key(tmp_path: Path) -> None:
    plain = job(written(tmp_path, HUB))
    secret = job(written(tmp_path, HUB + "; token: {secret: HF_TOKEN}"))
    assert secret["key"] == plain["key"]
    assert secret["secrets"] == {"HF_TOKEN": "HF_TOKEN"}
    assert plain["contract"] == {"network": True}


def test_a_share_of_everything_leaves_no_agent_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed = "\n  mixed: {kind: mix, agent: general, general: general, share_of: total"
    spec = Path(written(tmp_path, PATH))
    spec.write_text(spec.read_text() + f"{mixed}, general_share: 1.0}}\n")
    [(code, message)] = faults(capsys, str(spec))
    assert code == "AGC603"
    assert "leaves no place for agent rows" in message
    spec.write_text(spec.read_text().replace("general_share: 1.0", "general_share: 0.5"))
    assert faults(capsys, str(spec)) == []
