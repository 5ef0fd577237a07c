"""Secrets by reference: only names are ever compiled, only where they may stand, and a run asks
for all of them before it starts anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import Compilation, compile_spec
from agentc.diagnostics import render_json, render_text
from agentc.plan.render import render_plan

SPEC = """\
agentc: 1
name: demo
params:
  account: {{type: str, default: MINE}}
environments: {{textcraft: {{backend: textcraft}}}}
servers:
  teacher: {{backend: openai, url: "{url}", model: {model}, api_key: {api_key}}}
prompts: {{p: {{instruction: {instruction}}}}}
models:
  base:
    backend: hf
    repo: a/b
    revision: f5db02db724555f92da89c216ac04704f23d4590
    token: {token}
stages:
  tested: {{kind: evaluate, model: base, split: test, seed: 0}}
"""
VALUES = {
    "url": "https://api.example.org/v1",
    "model": "big",
    "api_key": "\"{{ secret('KEY_OF_' ~ account) }}\"",
    "instruction": "Go.",
    "token": "{secret: HF_TOKEN}",
}


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


def compiled(folder: Path, table: BackendTable, **values: str) -> Compilation:
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.format(**{**VALUES, **values}))
    return compile_spec(spec, {}, table)


def command(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if name != "HF_TOKEN"}
    return subprocess.run(
        [str(Path(sys.executable).with_name("agentc")), *words],
        capture_output=True,
        text=True,
        env={**known, **variables},
        check=False,
    )


def test_both_ways_of_referring_reach_the_jobs_by_name(tmp_path: Path, table: BackendTable) -> None:
    found = compiled(tmp_path, table)
    assert found.plan is not None, render_text(found.diagnostics)
    jobs = {job["id"]: job for job in json.loads(render_plan(found.plan))["jobs"]}
    assert jobs["base"]["secrets"] == {"HF_TOKEN": "HF_TOKEN"}
    teacher = next(one for one in jobs["tested:rollout"]["leases"] if one["role"] == "policy")
    assert teacher["secrets"] == {"AGENTC_REMOTE_TOKEN": "KEY_OF_MINE"}
    assert [(use.name, use.stages) for use in found.secrets] == [
        ("KEY_OF_MINE", {"tested"}),
        ("HF_TOKEN", {"base"}),
    ]


def test_a_reference_does_not_change_the_key(tmp_path: Path, table: BackendTable) -> None:
    plans = [compiled(tmp_path, table, token=token).plan for token in ("null", "{secret: A_B}")]
    keys = [[job.key for job in plan.jobs] for plan in plans if plan is not None]
    assert len(keys) == 2
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    ("setting", "written", "code"),
    [
        ("token", "my-own-key-of-no-known-form", "AGC322"),
        ("token", "{secret: my-own-key-of-no-known-form}", "AGC322"),
        ("token", "{secret: [my-own-key-of-no-known-form]}", "AGC322"),
        ("token", '"my-own-key-of-no-known-form"', "AGC322"),
        ("token", "\"{{ 'my-own-key' ~ '-of-no-known-form' }}\"", "AGC322"),
        ("api_key", "my-own-key-of-no-known-form", "AGC322"),
        ("api_key", "\"{{ secret('my-own-key-of-no-known-form') }}\"", "AGC322"),
        ("model", "\"{{ secret('MODEL') }}\"", "AGC320"),
        ("model", "{secret: MODEL}", "AGC320"),
        ("api_key", "\"Bearer {{ secret('KEY') }}\"", "AGC320"),
        ("instruction", "\"Say {{ secret('KEY') }}.\"", "AGC320"),
        ("instruction", "\"{{ secret('KEY') }}\"", "AGC320"),
        ("api_key", "\"{{ secret('KEY') | upper }}\"", "AGC320"),
        ("api_key", "\"{{ [secret('KEY')] | first }}\"", "AGC320"),
        ("api_key", "\"{{ secret('KEY') ~ 'x' }}\"", "AGC320"),
        ("api_key", '"{{ secret() }}"', "AGC303"),
    ],
)
def test_no_other_way(
    setting: str, written: str, code: str, tmp_path: Path, table: BackendTable
) -> None:
    found = compiled(tmp_path, table, **{setting: written})
    assert code in {each.code for each in found.diagnostics}, render_text(found.diagnostics)
    assert found.plan is None
    if code == "AGC322" and "{{" not in written:
        shown = render_text(found.diagnostics) + render_json(found.diagnostics)
        assert "no-known-form" not in shown


def test_a_choice_between_secrets_is_a_whole_value(tmp_path: Path, table: BackendTable) -> None:
    chosen = "\"{{ secret('A_KEY') if account == 'HERS' else none }}\""
    found = compiled(tmp_path, table, api_key=chosen)
    assert [use.name for use in found.secrets] == ["HF_TOKEN"]


def test_a_param_holds_no_secret(tmp_path: Path, table: BackendTable) -> None:
    text = SPEC.format(**VALUES).replace("default: MINE", "default: \"{{ secret('X') }}\"")
    (tmp_path / "spec.yaml").write_text(text)
    found = compile_spec(tmp_path / "spec.yaml", {}, table)
    assert "AGC307" in {each.code for each in found.diagnostics}


def test_check_lists_what_a_run_needs_and_where_it_goes(
    tmp_path: Path, table: BackendTable
) -> None:
    compiled(tmp_path, table)
    done = command("check", str(tmp_path / "spec.yaml"))
    assert done.returncode == 0
    sent = "api_key of server `teacher`, sent to https://api.example.org/v1"
    assert f"a run needs the secret KEY_OF_MINE ({sent})" in done.stdout
    assert "a run needs the secret HF_TOKEN (token of stage `base`)" in done.stdout


def test_a_run_asks_for_all_of_them_before_anything_starts(
    tmp_path: Path, table: BackendTable
) -> None:
    compiled(tmp_path, table)
    store = tmp_path / "store"
    words = ("run", str(tmp_path / "spec.yaml"), "--store", str(store))
    done = command(*words)
    assert done.returncode == 1
    assert "the secret KEY_OF_MINE is not set" in done.stderr
    assert "the secret HF_TOKEN is not set" in done.stderr
    assert "spec.yaml:7:" in done.stderr
    assert "needed by `tested`" in done.stderr
    assert not list(store.rglob("job.json"))
    # Only what the wanted part of the experiment needs.
    done = command(*words, "--until", "base", KEY_OF_MINE="")
    assert "HF_TOKEN" in done.stderr
    assert "KEY_OF_MINE" not in done.stderr
    # The name says enough: nobody wants the value on a screen.
    done = command(*words, KEY_OF_MINE="canary-7f3a\n9c", HF_TOKEN="canary-hub\n")
    assert done.returncode == 1
    assert "the secret KEY_OF_MINE has a line break or another control character" in done.stderr
    assert "the secret HF_TOKEN begins or ends with a line break" in done.stderr
    assert "canary" not in done.stderr + done.stdout
