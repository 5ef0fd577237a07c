"""`track:` in a spec and `--track` of a command: what is understood, what is refused, and that no
key and no plan knows of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from agentc.backend_api import BackendTable, load_backends
from agentc.cli import main
from agentc.compilation import compile_spec
from agentc.diagnostics import Sink
from agentc.plan.render import plan_document
from agentc.published.json_schema import language_schema
from agentc.tracking.choice import choose_trackers, report_missing_secrets

SPEC = """\
agentc: 1
name: demo
params: {{where: {{type: str, default: trackio}}}}
environments: {{craft: {{backend: textcraft}}}}
stages:
  expert: {{kind: expert, split: train}}
{track}
"""
ONLINE = "track: {wandb: {mode: online, api_key: {secret: MY_KEY}}}"


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


@pytest.fixture(scope="module")
def schema(table: BackendTable) -> Draft202012Validator:
    """The published schema of this section alone."""
    whole: Any = language_schema(table)
    return Draft202012Validator({**whole["properties"]["track"], "$defs": whole["$defs"]})


def compiled(folder: Path, table: BackendTable, track: str):  # type: ignore[no-untyped-def]
    path = folder / "demo.yaml"
    path.write_text(SPEC.format(track=track), encoding="utf-8")
    return compile_spec(path, {}, table)


@pytest.mark.parametrize(
    ("track", "expected"),
    [
        ("", []),
        ("track: trackio", [("trackio", {})]),
        ("track: '{{ where }}'", [("trackio", {})]),
        ("track: [tensorboard, trackio]", [("tensorboard", {}), ("trackio", {})]),
        ("track: {trackio: , mlflow: {uri: 'http://here:5000', project: mine}}",
         [("trackio", {}), ("mlflow", {"uri": "http://here:5000", "project": "mine"})]),
        (ONLINE, [("wandb", {"mode": "online", "api_key": {"secret": "MY_KEY"}})]),
    ],
)  # fmt: skip
def test_what_may_be_written(
    tmp_path: Path,
    table: BackendTable,
    schema: Draft202012Validator,
    track: str,
    expected: list[object],
) -> None:
    result = compiled(tmp_path, table, track)
    assert not [each for each in result.diagnostics if each.severity == "error"]
    assert [(each.tracker, each.settings) for each in result.module.track] == expected
    written = yaml.safe_load((tmp_path / "demo.yaml").read_text())
    assert "track" not in written or schema.is_valid(written["track"])


@pytest.mark.parametrize(
    ("track", "code"),
    [
        ("track: trackoi", "AGC760"),
        ("track: [[trackio]]", "AGC203"),
        ("track: {trackio: {projekt: mine}}", "AGC201"),
        ("track: {wandb: {api_key: my-own-key}}", "AGC322"),
        ("track: {wandb: {mode: online}}", "AGC761"),
        ("track: {tensorboard: {dir: /etc/elsewhere}}", "AGC123"),
        ("track: {mlflow: {uri: 'sqlite:////etc/mlflow.db'}}", "AGC123"),
        ("track: {mlflow: {uri: 'file:../elsewhere'}}", "AGC123"),
    ],
)
def test_what_is_refused(tmp_path: Path, table: BackendTable, track: str, code: str) -> None:
    result = compiled(tmp_path, table, track)
    errors = [each for each in result.diagnostics if each.severity == "error"]
    assert [each.code for each in errors] == [code]
    assert not [each for each in errors if "my-own-key" in each.message]


def test_no_plan_knows_of_trackers(tmp_path: Path, table: BackendTable) -> None:
    plans = []
    for track in ("", "track: [trackio, wandb]", ONLINE):
        document = dict(plan_document(compiled(tmp_path, table, track).plan))
        document.pop("spec")  # the digest of the spec's text
        plans.append(json.dumps(document, sort_keys=True))
    assert len(set(plans)) == 1


def test_the_command_takes_the_place_of_the_spec(tmp_path: Path, table: BackendTable) -> None:
    written = compiled(tmp_path, table, ONLINE).module.track
    sink = Sink()
    (own,) = choose_trackers(written, None, sink)
    # Its settings hold, a secret is its name, and its value is nowhere.
    assert (own.settings, own.secrets) == ({"mode": "online"}, {"WANDB_API_KEY": "MY_KEY"})
    both = choose_trackers(written, "trackio, wandb", sink)
    assert [each.tracker.id for each in both] == ["trackio", "wandb"]
    assert both[1] == own
    assert choose_trackers(written, "none", sink) == ()
    assert not sink.has_errors
    report_missing_secrets([own], {"MY_KEY": "0123"}, sink)
    assert not sink.has_errors
    report_missing_secrets([own], {}, sink)
    choose_trackers(written, "trackoi", sink)
    assert [each.code for each in sink.sorted()] == ["AGC321", "AGC760"]


def test_check_says_where_a_key_would_be_sent(tmp_path: Path, table: BackendTable) -> None:
    url = "track: {wandb: {mode: online, url: 'https://else.where', api_key: {secret: MY_KEY}}}"
    for track, sent in ((ONLINE, "https://api.wandb.ai"), (url, "https://else.where")):
        (use,) = compiled(tmp_path, table, track).secrets
        assert use.described() == f"MY_KEY (api_key of tracker `wandb`, sent to {sent})"


def test_folders_are_those_beside_the_spec(tmp_path: Path, table: BackendTable) -> None:
    for track, expected in (
        ("tensorboard: {dir: curves}", {"dir": f"{tmp_path}/curves"}),
        ("mlflow: {uri: 'sqlite:///mine.db'}", {"uri": f"sqlite:///{tmp_path}/mine.db"}),
        ("mlflow: {uri: 'file:mine'}", {"uri": f"file:{tmp_path}/mine"}),
        ("mlflow: {uri: 'https://mlflow.lab'}", {"uri": "https://mlflow.lab"}),
    ):
        written = compiled(tmp_path, table, f"track: {{{track}}}").module.track
        (own,) = choose_trackers(written, None, Sink(), tmp_path)
        assert own.settings == expected


def test_a_secret_that_is_not_set_is_said_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    path = tmp_path / "demo.yaml"
    path.write_text(SPEC.format(track=ONLINE), encoding="utf-8")
    assert main(["run", str(path), "--store", str(tmp_path / "store")]) == 1
    shown = capsys.readouterr().err
    assert "the secret MY_KEY is not set" in shown
    assert "--track none" in shown
    assert not (tmp_path / "store" / "runs").exists()


def test_a_run_that_was_never_is_not_tracked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", str(tmp_path / "store")]
    assert main(["track", "demo", "--to", "trackio", *store]) == 5
    assert "nothing was run" in capsys.readouterr().err
