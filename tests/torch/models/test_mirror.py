"""model.hf through a mirror of the hub, in the wrapper of a run: what the shell says of the hub
reaches the job, and a commit in the cache is not asked for again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("huggingface_hub")

from tests.lock.model_hub import HEAD, Hub
from tests.support.built_software import built_python
from tests.support.gguf_files import write_gguf
from tests.support.tiny_plan import TinyPlan
from tests.torch.trl.jobs import small_model

from agentc.runtime.store.digests import sha256_of
from agentc_backends.software import GGUF, TORCH


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    served = Hub()
    model = small_model(tmp_path / "model")
    served.model_files = {path.name: path.read_bytes() for path in model.iterdir()}
    yield served
    served.close()


@pytest.mark.slow
def test_a_model_comes_through_the_mirror_and_once(hub: Hub, tmp_path: Path) -> None:
    built_python(TORCH)
    plan = TinyPlan(tmp_path)
    plan.software("torch", TORCH.text)
    for number in range(3):
        entry = plan.job(
            f"base{number}", kind="model", produces="Checkpoint", software="torch",
            contract={"network": True}, repo="some/model", revision=HEAD, chat_format="chatml",
        )  # fmt: skip
        entry["program"] = ["-m", "agentc_backends.data.models.job_hf"]
        entry["key"] = f"{number:032x}"
    # No proxy may answer for a mirror on loopback, and no other cache may have it.
    shell = {"HF_HOME": str(tmp_path / "hub_home"), "HF_HUB_OFFLINE": "0", "NO_PROXY": "127.0.0.1"}
    refused = plan.run("base0", HF_ENDPOINT="http://127.0.0.1:9", HF_HUB_ETAG_TIMEOUT="1", **shell)
    assert refused.returncode == 1
    assert "is not in the local cache and the hub cannot be reached" in refused.stderr

    done = plan.run("base0", HF_ENDPOINT=hub.url, **shell)
    assert done.returncode == 0, done.stderr
    asked = [path for path, _ in hub.requests]
    assert f"/some/model/resolve/{HEAD}/model.safetensors" in asked
    weights = plan.data("base0") / "model.safetensors"
    assert weights.read_bytes() == hub.model_files["model.safetensors"]

    hub.requests.clear()
    for name, offline in (("base1", "0"), ("base2", "1")):
        again = plan.run(name, HF_ENDPOINT=hub.url, **{**shell, "HF_HUB_OFFLINE": offline})
        assert again.returncode == 0, again.stderr
    assert hub.requests == [], "what the cache has of a commit cannot be out of date"


@pytest.mark.slow
def test_a_gguf_file_comes_through_the_mirror(tmp_path: Path) -> None:
    built_python(GGUF)
    hub = Hub()
    hub.model_files = {"tiny.gguf": write_gguf(tmp_path / "tiny.gguf").read_bytes()}
    plan = TinyPlan(tmp_path)
    plan.software("gguf", GGUF.text)
    nothing = dict.fromkeys(("path", "package", "digest"))
    for name, file, sha256 in (
        ("base", "tiny.gguf", sha256_of(tmp_path / "tiny.gguf")),
        ("absent", "other.gguf", None),
        ("another", "tiny.gguf", "0" * 64),
    ):
        entry = plan.job(
            name, kind="model", produces="Checkpoint", software="gguf", contract={"network": True},
            repo="some/model", revision=HEAD, file=file, sha256=sha256, save_dtype="bfloat16",
            chat_format="tokenizer", **nothing,
        )  # fmt: skip
        entry["program"] = ["-m", "agentc_backends.data.models.gguf.job_gguf"]
    shell = {
        "HF_HOME": str(tmp_path / "hub_home"),
        "HF_HUB_OFFLINE": "0",
        "NO_PROXY": "127.0.0.1",
        "HF_ENDPOINT": hub.url,
    }
    done = plan.run("base", **shell)
    assert done.returncode == 0, done.stderr
    assert (plan.data("base") / "model.safetensors").is_file()
    absent, another = plan.run("absent", **shell), plan.run("another", **shell)
    hub.close()
    assert "some/model has no file other.gguf" in absent.stderr
    assert f"has the SHA-256 {sha256_of(tmp_path / 'tiny.gguf')}, not 000" in another.stderr
