"""A spec that searches: what is compiled of it, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_folder import write_model_folder

from agentc.cli import main

SPEC = """\
agentc: 1
name: trees
environments:
  world: {backend: WORLD}
servers:
  local: {backend: scripted}
prompts:
  plain: {instruction: Act., reply_format: FORMAT}
models:
  base: {backend: path, path: model}
stages:
  grow:
    kind: search
    model: base
    split: train
    depth: 3
"""


RELEASED = (
    "agentgym, server: textcraft, url: 'http://127.0.0.1:36008', splits: {train: {range: [0, 9]}}"
)
"""An environment that speaks AgentGym's protocol alone, which knows no copies."""


def written(folder: Path, more: str = "", world: str = "textcraft", style: str = "react") -> str:
    write_model_folder(folder / "model")
    path = folder / "trees.yaml"
    path.write_text(SPEC.replace("WORLD", world).replace("FORMAT", style) + more)
    return str(path)


def faults(capsys: pytest.CaptureFixture[str], spec: str) -> list[tuple[str, str]]:
    capsys.readouterr()
    main(["check", "--format", "json", spec])
    found = json.loads(capsys.readouterr().out)["diagnostics"]
    return [(one["code"], one["message"]) for one in found if one["severity"] == "error"]


def job(folder: Path, spec: str) -> dict[str, Any]:
    assert main(["bundle", "--bare", spec, "-o", str(folder / "plan")]) == 0
    plan = json.loads((folder / "plan" / "plan.json").read_text("utf-8"))
    return next(one for one in plan["jobs"] if one["id"] == "grow")


def test_what_a_search_costs_is_no_part_of_its_key(tmp_path: Path) -> None:
    plain = job(tmp_path, written(tmp_path))
    other = job(
        tmp_path,
        written(
            tmp_path, "    reach: replay\n    concurrency: 2\n    options: {sessions_per_tree: 3}\n"
        ),
    )
    assert other["placement"] != plain["placement"]
    assert other["key"] == plain["key"]
    assert job(tmp_path, written(tmp_path, "    tie_seed: 1\n"))["key"] != plain["key"]
    assert plain["produces"] == "SearchTrees"
    assert plain["resume"] is True
    assert plain["contract"] == {"reward_range": [0.0, 1.0]}


@pytest.mark.parametrize(
    ("more", "world", "style", "code", "said"),
    [
        ("decode: {temperature: 0}", "textcraft", "react", "AGC603", "4 children would be one"),
        ("reach: fork", RELEASED, "react", "AGC603", "cannot copy its state"),
        ("{reach: replay, verify_share: 0.5}", "textcraft", "react", "AGC602", "copies nothing"),
        ("options: {action_space: required}", "textcraft", "action_only", "AGC602", "has no"),
        ("options: {action_span: rest}", "textcraft", "text", "AGC602", "takes all of every reply"),
        ("options: {turn_numbers: drop}", "textcraft", "text", "AGC602", "has no marks"),
        ("seed: 1", "textcraft", "text, output_marker: 'OUT:'", "AGC603", "one text of each reply"),
    ],
)
def test_what_cannot_be_honoured_is_refused(
    more: str, world: str, style: str, code: str, said: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    lines = "".join(f"    {one}\n" for one in more.strip("{}").split(", ") if more[0] == "{")
    spec = written(tmp_path, lines or f"    {more}\n", world, style)
    [(found, message)] = faults(capsys, spec)
    assert found == code
    assert said in message


def test_one_greedy_child_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = written(tmp_path, "    children: 1\n    decode: {temperature: 0}\n")
    assert faults(capsys, spec) == []
