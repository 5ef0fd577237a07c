"""`agentc plan --preflight`: facts of this machine, a hub that answers, exit codes, both forms."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agentc.cli import main
from agentc.runtime.software.lock_text import lock_digest

COMMIT = "5" * 40
LOCKS = Path(__file__).parents[2] / "backends/agentc_backends/software"
SPEC = f"""
agentc: 1
name: demo
models:
  base: {{backend: hf, repo: lab/gated-10m, revision: "{COMMIT}", chat_format: chatml}}
environments:
  craft: {{backend: textcraft}}
prompts:
  react: {{instruction: Craft the goal.}}
stages:
  expert: {{kind: expert, split: train, limit: 200}}
  sft:
    kind: sft
    model: base
    data: expert
    lr: 2e-5
    global_batch: 16
    max_length: 1024
    processes: 2
    placement: {{gpus: 2, minutes: 60}}
"""


class Hub(BaseHTTPRequestHandler):
    """A hub with one repository behind a gate."""

    def do_HEAD(self) -> None:
        known = self.path.startswith(f"/lab/gated-10m/resolve/{COMMIT}/")
        opened = self.headers.get("Authorization") == "Bearer letmein"
        self.send_response(302 if known and opened else 403 if known else 404)
        if not (known and opened):
            self.send_header("X-Error-Code", "GatedRepo" if known else "RevisionNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    yield address
    server.shutdown()
    server.server_close()


Look = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(autouse=True)
def no_software_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What somebody has built here must not decide, nor whether there is a package index."""
    monkeypatch.delenv("AGENTC_SOFTWARE", raising=False)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))


@pytest.fixture
def look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Look:
    """Runs the command on a spec; returns exit code and document."""

    def run(spec: str, *words: str) -> tuple[int, dict[str, Any]]:
        file = tmp_path / "spec.yaml"
        file.write_text(spec)
        store = str(tmp_path / "store")
        code = main(["plan", "--preflight", str(file), "--store", store, "--json", *words])
        return code, json.loads(capsys.readouterr().out)

    return run


def of(document: dict[str, Any], check: str) -> list[dict[str, Any]]:
    return [each for each in document["findings"] if each["check"] == check]


def test_a_gate_without_a_token(hub: str, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    code, document = look(SPEC)
    (asked,) = of(document, "hub")
    assert (code, asked["verdict"], asked["online"]) == (7, "problem", True)
    assert "private or gated, and `base` is given no token" in asked["message"]

    opened = SPEC.replace("chat_format: chatml", "chat_format: chatml, token: {secret: MY_TOKEN}")
    monkeypatch.setenv("MY_TOKEN", "letmein")
    _, document = look(opened)
    assert of(document, "hub")[0]["verdict"] == "ok"
    assert "MY_TOKEN" in of(document, "secret")[0]["message"]
    assert "letmein" not in json.dumps(document)
    monkeypatch.setenv("MY_TOKEN", "wrong")
    _, document = look(opened)
    assert "not opened by the token in MY_TOKEN" in of(document, "hub")[0]["message"]
    monkeypatch.delenv("MY_TOKEN")
    code, document = look(opened, "--offline")
    assert (code, of(document, "secret")[0]["verdict"]) == (7, "problem")
    assert of(document, "hub") == []

    _, document = look(SPEC.replace(COMMIT, "6" * 40))
    assert "no lab/gated-10m at the revision" in of(document, "hub")[0]["message"]


def test_a_token_that_no_header_can_hold_is_not_shown(
    hub: str, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "canary\n")
    words = "chat_format: chatml, token: {secret: MY_TOKEN}"
    _, document = look(SPEC.replace("chat_format: chatml", words))
    assert of(document, "hub")[0]["verdict"] == "problem"
    assert "the secret MY_TOKEN begins or ends with a line break" in str(document)
    assert "canary" not in str(document)


def test_a_hub_that_does_not_answer(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    _, document = look(SPEC)
    assert of(document, "hub")[0]["verdict"] == "unknown"


def test_a_branch_needs_the_hub_or_a_copy(
    look: Look, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run starts with its commit; it fails at once where there is none."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    branch = SPEC.replace(f'"{COMMIT}"', "main")
    code, document = look(branch)
    (asked,) = of(document, "hub")
    assert (code, asked["verdict"], asked["about"]) == (7, "problem", ["base"])
    assert "lab/gated-10m at main is not pinned to a commit" in asked["message"]
    assert "hf download" in asked["fix"]
    repository = tmp_path / "hub/models--lab--gated-10m"
    (repository / "snapshots" / COMMIT).mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text(COMMIT)
    _, document = look(branch)
    (asked,) = of(document, "hub")
    assert asked["verdict"] == "ok"
    assert "a run uses the copy" in asked["message"]


def test_what_is_cached_is_not_asked_for(
    look: Look, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    folder = tmp_path / "hub/models--lab--gated-10m/snapshots" / COMMIT
    folder.mkdir(parents=True)
    (folder / "config.json").touch()
    _, document = look(SPEC)
    (asked,) = of(document, "hub")
    assert (asked["verdict"], asked["online"]) == ("ok", False)


def test_disk_and_store(look: Look, tmp_path: Path) -> None:
    _, document = look(SPEC, "--offline")
    (disk, *_) = of(document, "disk")
    assert "checkpoints of `sft`" in disk["message"]
    huge = SPEC.replace("lab/gated-10m", "lab/model-900b")
    code, document = look(huge, "--offline")
    assert (code, of(document, "disk")[0]["verdict"]) == (7, "problem")
    (tmp_path / "store").write_text("in the way")
    _, document = look(SPEC, "--offline")
    assert of(document, "store")[0]["verdict"] == "problem"


def test_the_build_of_vllm_and_its_size(look: Look) -> None:
    served = "servers: {{local: {{backend: {}}}}}\nprompts:"
    test = "stages:\n  test: {kind: evaluate, model: base, split: test}\n"
    for backend, said in (("vllm", 1), ("transformers", 0)):
        spec = SPEC.replace("prompts:", served.format(backend)).replace("stages:\n", test)
        _, document = look(spec, "--offline")
        lines = [each["message"] for each in of(document, "software")]
        assert sum("vLLM's CPU build, 3.5 GB" in line for line in lines) == said, lines


def test_who_builds_missing_software(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`agentc run` does, on its own host, under a queued profile too; what nodes cannot see they
    build again."""

    def said(*words: str) -> list[tuple[str, str, str | None]]:
        found = of(look(SPEC, "--offline", *words)[1], "software")
        wanted = [each for each in found if "vLLM" not in each["message"]]
        return [(each["verdict"], each["message"], each["fix"]) for each in wanted]

    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    profile = tmp_path / "profile"
    profile.mkdir()
    (profile / "config.yaml").write_text("executor: slurm\n")
    queued = ("--profile", str(profile))
    ((verdict, message, fix),) = said()
    assert (verdict, fix) == ("ok", None)
    assert "`agentc run` builds them before its first job" in message
    ((verdict, message, fix),) = said(*queued)
    assert verdict == "warning"
    assert "`agentc run` builds them on this host before it submits anything" in message
    assert "Snakemake without agentc the first job of each builds it on its node" in message
    assert "agentc software sync" in str(fix)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for words in ((), queued):
        ((verdict, message, fix),) = said(*words)
        assert verdict == "problem"
        assert "PIP_NO_INDEX is set without PIP_FIND_LINKS" in message
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert [verdict for verdict, *_ in said()] == ["ok"]
    # On the nodes /dev/shm is another one.
    shared_memory = Path("/dev/shm")
    monkeypatch.setenv("AGENTC_SOFTWARE", str(shared_memory / "software"))
    assert [verdict for verdict, *_ in said()] == ["ok"]
    _, (verdict, message, fix) = said(*queued)
    assert verdict == "warning"
    assert "in /dev/shm/software lie on tmpfs" in message
    assert "on each node the first job builds its own" in message
    assert "AGENTC_SOFTWARE" in str(fix)


def test_gpus_of_this_machine(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    code, document = look(SPEC, "--offline")
    (gpus,) = of(document, "gpus")
    assert (code, gpus["verdict"], gpus["about"]) == (7, "problem", ["sft"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    _, document = look(SPEC, "--offline")
    assert of(document, "gpus")[0]["verdict"] == "ok"
    for name, value in (("CUDA_VISIBLE_DEVICES", ""), ("AGENTC_GPUS", "0")):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.setenv(name, value)
        _, document = look(SPEC, "--offline")
        (gpus,) = of(document, "gpus")
        assert (gpus["verdict"], f"{name}={value} hides" in gpus["message"]) == ("warning", True)
    monkeypatch.delenv("AGENTC_GPUS")
    monkeypatch.setenv("PATH", os.defpath)  # no driver answers
    code, document = look(SPEC, "--offline")
    (gpus,) = of(document, "gpus")
    assert (code, gpus["verdict"], gpus["about"]) == (7, "problem", ["sft"])
    assert "2 GPUs requested, none found on this machine" in gpus["message"]
    assert "`placement: {gpus: 0}`" in gpus["fix"]


def machine(folder: Path, monkeypatch: pytest.MonkeyPatch, driver: str, *programs: str) -> None:
    """Pretend a machine with two GPUs, this driver and these programs."""
    folder.mkdir()
    for name in programs:
        (folder / name).touch(0o755)
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho {driver}\n")
    tool.chmod(0o755)
    monkeypatch.setattr(
        "agentc.runtime.software.host_requirements._DRIVER_FILE", folder / "nothing"
    )
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)


def test_driver_and_compiler_of_this_machine(
    look: Look, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine(tmp_path / "old", monkeypatch, "535.129.03", "gcc")
    code, document = look(SPEC, "--offline")
    (gpus,) = (each for each in of(document, "gpus") if each["verdict"] == "problem")
    assert (code, gpus["about"]) == (7, ["sft"])
    for words in ("`torch`: CUDA 13.0 needs", "driver 580 or newer", "535.129.03"):
        assert words in gpus["message"]
    assert of(document, "compiler") == []

    machine(tmp_path / "new", monkeypatch, "580.65.06")
    code, document = look(SPEC, "--offline")
    assert [each["verdict"] for each in of(document, "gpus")] == ["ok"]
    (compiler,) = of(document, "compiler")
    assert (code, compiler["verdict"], compiler["about"]) == (7, "problem", ["sft"])
    assert "trl compiles code while it runs and finds no C compiler" in compiler["message"]

    _, document = look(SPEC.replace("gpus: 2, ", ""), "--offline")
    assert of(document, "compiler") == [], "on CPUs a training compiles nothing"


def test_variables_for_jobs(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FI_PROVIDER", "efa")
    _, document = look(SPEC, "--offline")
    (found,) = of(document, "variables")
    assert (found["verdict"], "`FI_PROVIDER`" in found["message"]) == ("ok", True)
    monkeypatch.setenv("AGENTC_JOB_VARIABLES", "HF_TOKEN")
    code, document = look(SPEC, "--offline")
    (found,) = of(document, "variables")
    assert (code, found["verdict"]) == (7, "problem")
    assert "`HF_TOKEN` holds a secret" in found["message"]


def test_software_that_was_built_for_cpus(
    look: Look, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a cluster too: what is built is known here."""
    lock = (LOCKS / "torch.lock").read_text("utf-8")
    folder = tmp_path / "store/software" / lock_digest(lock)[:16]
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").touch(0o755)
    record = {"lock": lock_digest(lock), "python": "3.11.7", "versions": {"torch": "2.13.0+cpu"}}
    (folder / "complete.json").write_text(json.dumps(record))
    profile = tmp_path / "profile"
    profile.mkdir()
    (profile / "config.yaml").write_text("executor: slurm\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    for words in ([], ["--profile", str(profile)]):
        _, document = look(SPEC, "--offline", *words)
        said = [each["message"] for each in of(document, "gpus") if each["verdict"] == "problem"]
        assert len(said) == 1, said
        assert "torch 2.13.0+cpu is a build for CPUs" in said[0]


@pytest.mark.parametrize(
    ("spec", "check", "words"),
    [
        (SPEC, "gpus", "requests 2 GPUs (spec.yaml:20), and this machine has 1"),
        (SPEC.replace("lab/gated-10m", "lab/model-900b"), "disk", "`sft` up to"),
    ],
)
def test_a_run_that_would_fail_ends_before_anything_is_measured(
    spec: str,
    check: str,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    file = tmp_path / "spec.yaml"
    file.write_text(spec)
    assert main(["run", str(file), "--store", str(tmp_path / "store"), "--plain"]) == 7
    said = capsys.readouterr().err
    assert f"  {check}: " in said
    assert words in said
    assert "measuring" not in said
    assert "`agentc run --force` starts the run all the same" in said
    assert not (tmp_path / "plans").exists()
    assert list((tmp_path / "store").iterdir()) == []


def test_what_a_profile_makes_of_it(look: Look, tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    text = "executor: slurm\nset-resources:\n  sft: {gpu: 1, nodes: 2}\n  expert: {nodes: 3}\n"
    (profile / "config.yaml").write_text(text)
    code, document = look(SPEC, "--offline", "--profile", str(profile))
    assert code == 7
    said = " ".join(each["message"] for each in document["findings"])
    assert "2 training processes get 1 GPUs (set-resources sft: gpu)" in said
    assert "expert.planner runs on one node and gets 3" in said
    assert of(document, "gpus")[0]["verdict"] == "problem"
    assert of(document, "memory") == [], "this machine's memory is not the cluster's"


def test_arrays_are_told_of(look: Look, tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    (profile / "config.yaml").write_text("executor: slurm\nslurm-array-jobs: all\n")
    _, document = look(SPEC, "--offline", "--profile", str(profile))
    assert "what the first one requests" in of(document, "snakemake")[0]["message"]


def test_servers_on_loopback_are_elsewhere_on_a_cluster(look: Look, tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    (profile / "config.yaml").write_text("executor: slurm\n")
    spec = SPEC.replace(
        "prompts:", "servers:\n  far: {backend: openai, url: 'http://127.0.0.1:8000/v1', "
        "model: m}\nprompts:",
    ) + "  evaluate: {kind: evaluate, model: sft, split: test}\n"  # fmt: skip
    _, document = look(spec, "--offline")
    assert of(document, "ports") == []
    _, document = look(spec, "--offline", "--profile", str(profile))
    (port,) = of(document, "ports")
    assert (port["verdict"], port["about"]) == ("problem", ["evaluate"])


def test_shared_servers_need_slurm(look: Look, tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    test = "  test: {kind: evaluate, model: base, split: test, server: local}\n"
    spec = SPEC.replace(
        "prompts:", "servers: {local: {backend: transformers, scope: shared}}\nprompts:"
    )
    for executor, verdicts in (("slurm", []), ("cluster-generic", ["problem"])):
        (profile / "config.yaml").write_text(f"executor: {executor}\n")
        _, document = look(spec + test, "--offline", "--profile", str(profile))
        assert [each["verdict"] for each in of(document, "servers")] == verdicts
    assert "`executor: cluster-generic`" in of(document, "servers")[0]["message"]
    _, document = look(spec + test, "--offline")
    assert of(document, "servers") == [], "on one machine it starts here"


def test_text_and_exit_codes(
    hub: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(SPEC)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    words = ["plan", "--preflight", str(file), "--store", str(tmp_path / "store")]
    assert main(words) == 7
    shown = capsys.readouterr().out
    assert shown.index("on this machine:") < shown.index("remote checks:")
    assert "  PROBLEM  hub: lab/gated-10m" in shown
    assert "1 problem, " in shown
    assert main([*words, "--offline"]) == 0
    assert "neither SLURM nor the model hub was queried" in capsys.readouterr().out
    assert not (tmp_path / "store").exists(), "it leaves no trace"
    assert main([*words, "--profile", "nowhere"]) == 2
    assert "no Snakemake profile `nowhere`" in capsys.readouterr().err
    assert main([*words, "--until", "sftt"]) == 5
    file.write_text(SPEC.replace("kind: sft", "kind: stf"))
    assert main(words) == 1
