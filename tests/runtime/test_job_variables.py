"""Which variables of the shell reach a job: those of the site and of AGENTC_JOB_VARIABLES, which
its manifest records, those of the hub where it may use the network, and never a secret."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from tiny_plan import PROGRAMS, TinyPlan

from agentc.runtime.software.job_software import SoftwareError, job_variables

SITE = {"FI_PROVIDER": "efa", "UCX_TLS": "rc", "TORCH_NCCL_BLOCKING_WAIT": "1", "OMPI_MCA_btl": "t"}
COMPILERS = {"CC": "/opt/gcc/bin/gcc", "CPATH": "/opt/python/include"}
HUB = {
    "HF_ENDPOINT": "http://mirror",
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_ETAG_TIMEOUT": "60",
    "HF_HUB_OFFLINE": "1",
}


def told(plan: TinyPlan, name: str) -> dict[str, str]:
    """What the job's program printed of its variables."""
    log = plan.data(name).parent / "logs/log.txt"
    return dict(line.split(" = ") for line in log.read_text().splitlines() if " = " in line)


def test_variables_of_the_site_reach_a_job_and_its_manifest(plan: TinyPlan) -> None:
    named = {"VLLM_LOGGING_LEVEL": "DEBUG", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    secret = {"VLLM_API_KEY": "canary-1", "UCX_TOKEN": "canary-2"}
    other = {"OTHER_SETTING": "stays here", "ALL_PROXY": "socks5://login:1080"}
    shell = {**SITE, **COMPILERS, **named, **secret, **other}
    plan.job("act", rows=1, echo=sorted(shell))
    words = "VLLM_*, CUBLAS_WORKSPACE_CONFIG"
    done = plan.run("act", AGENTC_JOB_VARIABLES=words, **shell)
    assert done.returncode == 0, done.stderr
    expected = {**SITE, **COMPILERS, **named, "ALL_PROXY": other["ALL_PROXY"]}
    assert told(plan, "act") == {name: expected.get(name, "None") for name in shell}
    manifest = plan.manifest("act")
    assert manifest["variables"] == {**SITE, **named}
    assert "canary" not in json.dumps(manifest)


def test_without_them_the_manifest_has_none(plan: TinyPlan) -> None:
    plan.job("act", rows=1)
    assert plan.run("act").returncode == 0
    assert "variables" not in plan.manifest("act")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("FI_*;UCX_*", "`FI_*;UCX_*` is neither a name nor a prefix"),
        ("*", "`*` is neither a name nor a prefix"),
        ("VLLM_*,HF_TOKEN", "`HF_TOKEN` holds a secret"),
        ("PYTHONPATH", "agentc sets `PYTHONPATH` itself"),
    ],
)
def test_a_wrong_word_is_named(words: str, said: str, plan: TinyPlan) -> None:
    plan.job("act", rows=1)
    done = plan.run("act", AGENTC_JOB_VARIABLES=words)
    assert done.returncode == 1
    assert f"AGENTC_JOB_VARIABLES: {said}" in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_of_the_hub_reach_jobs_that_may_use_the_network(plan: TinyPlan) -> None:
    for name, network in (("fetch", True), ("act", False)):
        plan.job(name, rows=1, echo=sorted(HUB), contract={"network": network})
        assert plan.run(name, **HUB).returncode == 0
    assert told(plan, "fetch") == HUB
    assert told(plan, "act") == {**dict.fromkeys(HUB, "None"), "HF_HUB_OFFLINE": "1"}


def test_a_declared_secret_is_no_variable_of_a_job(plan: TinyPlan) -> None:
    """By whatever name: another job's own is not inherited."""
    plan.job("keyed", rows=1)["secrets"] = {"API": "FI_SOMETHING"}
    plan.job("act", rows=1, echo=["FI_SOMETHING"])
    done = plan.run("act", FI_SOMETHING="canary")
    assert done.returncode == 0, done.stderr
    assert told(plan, "act") == {"FI_SOMETHING": "None"}
    assert "variables" not in plan.manifest("act")


def test_compiled_code_is_cached_on_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "VLLM_CACHE_ROOT")
    names += ("FLASHINFER_WORKSPACE_BASE",)
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = job_variables(tmp_path, 1, False, {})
    folder = tmp_path / f"agentc-cache-{os.getuid()}"
    assert [Path(found[name]).parent for name in names] == [folder] * 4
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    monkeypatch.setenv("TRITON_CACHE_DIR", "/scratch/triton")
    assert job_variables(tmp_path, 1, False, {})["TRITON_CACHE_DIR"] == "/scratch/triton"
    folder.chmod(0o777)  # anybody could put code there
    assert "VLLM_CACHE_ROOT" not in job_variables(tmp_path, 1, False, {})
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert "VLLM_CACHE_ROOT" not in job_variables(tmp_path, 1, False, {})


def test_a_wrong_word_ends_other_programs_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTC_JOB_VARIABLES", "A B")
    with pytest.raises(SoftwareError, match="`A B` is neither"):
        job_variables(tmp_path, 1, False, {})


@pytest.mark.parametrize("name", ["APPTAINER_BIND", "SINGULARITY_BIND", "APPTAINER_BINDPATH"])
def test_folders_that_the_user_binds_reach_the_container(
    name: str, plan: TinyPlan, tmp_path: Path
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "apptainer"
    script.write_text(f"#!{sys.executable}\n" + (PROGRAMS / "apptainer").read_text())
    script.chmod(0o755)
    plan.software("image", f"# agentc: container docker://x.org/y/z@sha256:{'ab' * 32}\n")
    plan.job("act", software="image", rows=1, echo=[name])
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    done = plan.run("act", PATH=path, **{name: "/scratch,/data:/mnt"})
    assert done.returncode == 0, done.stderr
    # Apptainer reads it from its own variables, which its program has too.
    assert told(plan, "act")[name] == "/scratch,/data:/mnt"
