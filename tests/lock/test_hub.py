"""Revisions of a model hub: branches are pinned by asking it, and stay pinned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from locking import codes, lock_of
from model_hub import HEAD, OLD, Hub

from agentc.cli import main
from agentc.lock.hub import HubError, HubUnreachableError, resolve_revision


def commit_in_plan(spec: Path) -> str:
    out = spec.parent / "compiled"
    assert main(["bundle", "--bare", str(spec), "-o", str(out)]) == 0
    jobs = json.loads((out / "plan.json").read_text())["jobs"]
    (model,) = (job for job in jobs if job["kind"] == "model")
    return str(model["config"]["revision"])


def key_of_model(spec: Path) -> object:
    return lock_of(spec).section("jobs")["llama"]


def test_a_branch_without_a_lock_is_a_warning_and_compiles_to_nothing(
    hub: Hub, hub_spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert codes(capsys, hub_spec) == (0, ["warning AGC745"])
    assert main(["check", str(hub_spec)]) == 0
    shown = capsys.readouterr().err
    assert "hub.yaml:6:52: warning[AGC745]: `main` of some/model is not pinned" in shown
    assert "pin it: they write hub.lock" in shown
    store = hub_spec.parent / "store"
    assert main(["plan", str(hub_spec), "--store", str(store)]) == 0
    assert main(["run", str(hub_spec), "--dry-run", "--store", str(store)]) == 0
    assert not hub_spec.with_suffix(".lock").exists()
    assert not hub.requests
    for command in (["bundle", "--bare"], ["bundle"]):
        out = hub_spec.parent / command[-1]
        capsys.readouterr()
        assert main([*command, str(hub_spec), "-o", str(out)]) == 1
        shown = capsys.readouterr().err
        assert "error[AGC603]" in shown
        assert "run `agentc lock`" in shown
        assert not out.exists()
    code, found = codes(capsys, hub_spec, "--locked")
    assert (code, sorted(found)) == (1, ["error AGC740"])
    assert main(["lock", str(hub_spec)]) == 0
    assert lock_of(hub_spec).section("models") == {"some/model@main": HEAD}
    assert main(["check", "--locked", str(hub_spec)]) == 0
    assert commit_in_plan(hub_spec) == HEAD


def run_expert(spec: Path) -> int:
    return main(["run", str(spec), "--until", "nothing", "--store", str(spec.parent / "store")])


def test_the_first_run_pins_a_branch(
    hub: Hub, hub_spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no such stage, so that a run ends after it has pinned and before it starts."""
    assert run_expert(hub_spec) == 5
    shown = capsys.readouterr().out
    assert f"some/model main: commit {HEAD}, checked with the hub" in shown
    assert "hub.lock: written" in shown
    assert lock_of(hub_spec).section("models") == {"some/model@main": HEAD}
    assert codes(capsys, hub_spec, "--locked") == (0, [])
    hub.branches = {"main": OLD}
    asked = len(hub.requests)
    assert run_expert(hub_spec) == 5
    assert len(hub.requests) == asked, "a pin is not asked for again"
    assert commit_in_plan(hub_spec) == HEAD


def cache_snapshot(cache: Path, repository: str, commit: str) -> None:
    """A repository as the hub's client lays it out."""
    folder = cache / repository
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(commit)
    (folder / "blobs").mkdir()
    (folder / "blobs" / "c0ffee").write_text("{}")
    (folder / "snapshots" / commit).mkdir(parents=True)
    (folder / "snapshots" / commit / "config.json").symlink_to("../../blobs/c0ffee")


@pytest.mark.parametrize("away", ["stopped", "offline"])
def test_without_a_hub_a_run_pins_what_the_cache_has(
    away: str,
    hub: Hub,
    hub_spec: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cache_snapshot(tmp_path / "hub_cache", "models--some--model", OLD)
    if away == "stopped":
        hub.close()
    else:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert run_expert(hub_spec) == 5
    shown = capsys.readouterr().out
    assert f"some/model main: commit {OLD} of the hub's cache on this machine" in shown
    assert lock_of(hub_spec).section("models") == {"some/model@main": OLD}
    assert not hub.requests


def test_a_ref_without_files_is_no_pin(hub: Hub, hub_spec: Path, tmp_path: Path) -> None:
    cache_snapshot(tmp_path / "hub_cache", "models--some--model", OLD)
    (tmp_path / "hub_cache" / "models--some--model" / "refs" / "main").write_text("c" * 40)
    hub.close()
    assert run_expert(hub_spec) == 1
    assert not hub_spec.with_suffix(".lock").exists()


def test_a_model_folder_is_offered_for_a_hub_that_is_gone(
    hub: Hub,
    hub_spec: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "models" / "some" / "model").mkdir(parents=True)
    config = tmp_path / "agentc" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'model_folders = ["{tmp_path / "models"}"]')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    hub.close()
    assert run_expert(hub_spec) == 1
    assert "write `{path: some/model}`" in capsys.readouterr().err


def test_models_and_data_sets_without_a_revision_are_pinned_at_main(
    hub: Hub, hub_spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = hub_spec.read_text()
    text = text.replace("{backend: hf, repo: some/model, revision: main, ", "{repo: some/model, ")
    text = text.replace("data: expert", "data: [expert, talk]")
    talk = "  talk: {kind: dataset, backend: hf, repo: some/data, file: train.jsonl}\n"
    hub_spec.write_text(text + talk)
    assert codes(capsys, hub_spec) == (0, ["warning AGC745", "warning AGC745"])
    assert run_expert(hub_spec) == 5
    pins = {"datasets/some/data@main": HEAD, "some/model@main": HEAD}
    assert lock_of(hub_spec).section("models") == pins
    assert codes(capsys, hub_spec, "--locked") == (0, [])
    out = hub_spec.parent / "compiled"
    assert main(["bundle", "--bare", str(hub_spec), "-o", str(out)]) == 0
    jobs = json.loads((out / "plan.json").read_text())["jobs"]
    (data,) = (job["config"] for job in jobs if job["kind"] == "dataset")
    assert (data["repo"], data["revision"]) == ("some/data", HEAD)


def test_a_run_adds_a_pin_to_a_lock_and_keeps_the_rest(
    hub: Hub, hub_spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_expert(hub_spec) == 5
    before = lock_of(hub_spec)
    text = hub_spec.read_text().replace("revision: main", "revision: v1/x")
    hub_spec.write_text(text)
    assert run_expert(hub_spec) == 5
    after = lock_of(hub_spec)
    assert after.section("models") == {"some/model@main": HEAD, "some/model@v1/x": OLD}
    assert after.section("jobs") == before.section("jobs")
    code, found = codes(capsys, hub_spec)
    assert (code, set(found)) == (0, {"warning AGC742", "warning AGC743"})


def test_a_run_that_cannot_pin_ends(
    hub: Hub, hub_spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub_spec.write_text(hub_spec.read_text().replace("revision: main", "revision: mian"))
    assert run_expert(hub_spec) == 1
    assert "error[AGC744]: some/model has no revision `mian`" in capsys.readouterr().err
    hub_spec.write_text(hub_spec.read_text().replace("revision: mian", "revision: main"))
    hub_spec.with_suffix(".lock").write_text("lock: 9\n")
    assert run_expert(hub_spec) == 1
    assert hub_spec.with_suffix(".lock").read_text() == "lock: 9\n"
    hub_spec.with_suffix(".lock").unlink()
    hub.close()
    assert run_expert(hub_spec) == 1
    assert "cannot be reached" in capsys.readouterr().err
    assert not hub_spec.with_suffix(".lock").exists()


def test_a_pin_stays_until_it_is_upgraded(
    hub: Hub, hub_spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lock", str(hub_spec)]) == 0
    key = key_of_model(hub_spec)
    hub.branches = {"main": OLD, "older": HEAD}
    assert main(["lock", str(hub_spec)]) == 0
    assert lock_of(hub_spec).section("models") == {"some/model@main": HEAD}
    assert main(["lock", "--upgrade", str(hub_spec)]) == 0
    assert lock_of(hub_spec).section("models") == {"some/model@main": OLD}
    # Another commit is another model.
    assert key_of_model(hub_spec) != key
    assert f"models: some/model@main: {HEAD} -> {OLD}" in capsys.readouterr().out


def test_offline_keeps_pins_and_says_so(
    hub: Hub, hub_spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lock", "--offline", str(hub_spec)]) == 1
    assert "pinned by no lock yet (offline)" in capsys.readouterr().err
    assert not hub.requests
    assert main(["lock", str(hub_spec)]) == 0
    asked = len(hub.requests)
    assert main(["lock", "--offline", str(hub_spec)]) == 0
    assert f"some/model main: commit {HEAD}, not checked: offline" in capsys.readouterr().out
    assert len(hub.requests) == asked


def test_a_hub_that_is_gone_does_not_lose_pins(
    hub: Hub, hub_spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lock", str(hub_spec)]) == 0
    hub.close()
    capsys.readouterr()
    assert main(["lock", str(hub_spec)]) == 0
    assert "cannot be reached" in capsys.readouterr().out
    assert main(["lock", "--upgrade", str(hub_spec)]) == 0
    assert lock_of(hub_spec).section("models") == {"some/model@main": HEAD}


def test_a_revision_that_does_not_exist(
    hub: Hub, hub_spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub_spec.write_text(hub_spec.read_text().replace("revision: main", "revision: mian"))
    assert main(["lock", str(hub_spec)]) == 1
    shown = capsys.readouterr().err
    assert "error[AGC744]: some/model has no revision `mian`" in shown
    hub_spec.write_text(hub_spec.read_text().replace("revision: mian", f"revision: {'c' * 40}"))
    assert main(["lock", str(hub_spec)]) == 1


def test_a_pin_that_was_edited_is_noticed(
    hub: Hub, hub_spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commit enters the key, so a pin changed by hand contradicts the keys of the lock."""
    assert main(["lock", str(hub_spec)]) == 0
    path = hub_spec.with_suffix(".lock")
    path.write_text(path.read_text().replace(HEAD, OLD))
    code, found = codes(capsys, hub_spec, "--locked")
    assert code == 1
    assert "error AGC743" in found


def test_names_with_slashes_are_one_part_of_the_address(hub: Hub) -> None:
    assert resolve_revision("some/model", "v1/x") == OLD
    assert hub.requests[-1][0] == "/api/models/some/model/revision/v1%2Fx"
    with pytest.raises(HubError, match="owner/name"):
        resolve_revision("some/../../etc", "main")
    with pytest.raises(HubError, match="no revision"):
        resolve_revision("other/model", "main")


def test_the_token_goes_to_the_hub_alone(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_canary")
    other = Hub()
    try:
        hub.redirect = other.url
        assert resolve_revision("some/model", "main") == HEAD
    finally:
        other.close()
    assert [auth for _, auth in hub.requests] == ["Bearer hf_canary"]
    assert [auth for _, auth in other.requests] == [None]


def test_the_token_is_not_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentc.lock import hub as module

    assert not module._is_private("http://hub.example.org")
    assert module._is_private("https://hub.example.org")


def test_an_address_that_is_no_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.branches = {"main": "not a commit"}
    with pytest.raises(HubUnreachableError, match="no commit"):
        resolve_revision("some/model", "main")
    monkeypatch.setenv("HF_ENDPOINT", "nonsense")
    with pytest.raises(HubUnreachableError):
        resolve_revision("some/model", "main")
