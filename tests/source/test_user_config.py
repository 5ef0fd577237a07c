"""The user's configuration: folders of models that every spec finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.model_folder import write_model_folder

from agentc.backend_api import load_backends
from agentc.compilation import Compilation, compile_spec
from agentc.source.user_config import ConfigError, config_files, model_folders

SPEC = """
agentc: 1
name: folders
models: {base: MODEL}
environments: {craft: {backend: textcraft}}
stages:
  expert: {kind: expert, split: train, limit: 8}
  sft: {kind: sft, model: base, data: expert, lr: 1e-5, global_batch: 1, max_length: 64}
"""


def configure(home: Path, text: str) -> dict[str, str]:
    file = home / "agentc" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return {"XDG_CONFIG_HOME": str(home), "XDG_CONFIG_DIRS": str(home / "nowhere")}


def compiled(model: str, folder: Path) -> Compilation:
    folder.mkdir(exist_ok=True)
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.replace("MODEL", model))
    return compile_spec(spec, {}, load_backends())


@pytest.mark.parametrize("model", ["llama", "ABSOLUTE", "{path: lab/llama}"])
def test_a_model_below_a_model_folder_needs_no_flag(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    place = shared / "llama" if model == "llama" else shared / "lab" / "llama"
    write_model_folder(place)
    model = model.replace("ABSOLUTE", str(place))
    refused = compiled(model, tmp_path / "specs")
    assert refused.plan is None
    for name, value in configure(tmp_path, f'model_folders = ["{shared}"]').items():
        monkeypatch.setenv(name, value)
    found = compiled(model, tmp_path / "specs")
    assert found.plan is not None, found.diagnostics
    draft = found.plan.jobs[0].draft
    assert draft.config["path"] == str(place)
    assert draft.backend == "model.path"


def test_the_folder_of_a_model_enters_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = set()
    for name in ("here", "there"):
        write_model_folder(tmp_path / name / "lab" / "llama")
        environment = configure(tmp_path, f'model_folders = ["{tmp_path / name}"]')
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        plan = compiled("{path: lab/llama}", tmp_path / "specs").plan
        assert plan is not None
        keys.add(plan.jobs[0].key)
    assert len(keys) == 1


def test_the_cache_of_the_hub_needs_no_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "hub" / "models--some--model" / "snapshots" / ("a" * 40)
    write_model_folder(snapshot)
    assert compiled(str(snapshot), tmp_path / "specs").plan is None
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert compiled(str(snapshot), tmp_path / "specs").plan is not None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("model_folder = []", "unknown key `model_folder`; did you mean `model_folders`?"),
        ('model_folders = "/scratch"', "takes a list of folders"),
        ('model_folders = ["models"]', "takes absolute paths, and `models` is relative"),
        ("model_folders = [", "is not TOML"),
    ],
)
def test_what_is_wrong_with_a_configuration(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml") as error:
        model_folders(configure(tmp_path, text))
    assert problem in str(error.value)


def test_the_users_configuration_comes_before_the_sites(tmp_path: Path) -> None:
    configure(tmp_path / "site", 'model_folders = ["/models"]')
    users = configure(tmp_path / "user", 'model_folders = ["~/models", "/scratch"]')
    environment = {**users, "XDG_CONFIG_DIRS": str(tmp_path / "site")}
    folders = [Path("~/models").expanduser(), Path("/scratch"), Path("/models")]
    assert list(model_folders(environment)) == folders
    assert len(config_files(environment)) == 2
    assert model_folders({"XDG_CONFIG_DIRS": str(tmp_path / "nowhere")}) == ()
