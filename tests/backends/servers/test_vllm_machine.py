"""What a vLLM server uses of its machine: kernels, cores, caches, temporary files."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import LeaseDraft, OptionView
from agentc.runtime.servers.server_log import find_cause
from agentc_backends.servers.vllm.backend import BACKEND as VLLM
from agentc_backends.servers.vllm.backend import CAUSES
from agentc_backends.servers.vllm.job_serve import prepare_machine, private_folder, require_memory


@pytest.mark.parametrize(
    ("values", "gpus", "switch"),
    [
        ({}, False, "--enforce-eager"),
        ({}, True, None),
        ({"enforce_eager": False}, False, "--no-enforce-eager"),
        ({"enforce_eager": True}, True, "--enforce-eager"),
        ({"enforce_eager": False}, True, "--no-enforce-eager"),
        # Without graphs vLLM answers 500 there.
        ({"pipeline_parallel": 2}, False, "--no-enforce-eager"),
    ],
)
def test_vllm_compiles_by_default_where_gpus_are(
    values: dict[str, Any], gpus: bool, switch: str | None
) -> None:
    """A start on a CPU is three times as long with it, and needs a C++ compiler."""
    program = VLLM.lease(OptionView(table=VLLM.fields, values=values, on_gpu=gpus)).program
    assert [word for word in program if word.endswith("enforce-eager")] == [switch] * bool(switch)


def test_threads_of_vllm_are_cores_of_the_job() -> None:
    def lease(on_gpu: bool = False, nodes: int = 1, **values: Any) -> LeaseDraft:
        view = OptionView(table=VLLM.fields, values=values, on_gpu=on_gpu, nodes=nodes)
        return VLLM.lease(view)

    three = lease(threads=3)
    assert (three.cores, three.variables["OMP_NUM_THREADS"]) == (3, "3")
    assert three.variables["OMP_WAIT_POLICY"] == "PASSIVE"
    assert lease().cores == 1
    assert lease(threads=3, tensor_parallel=2).cores == 6
    assert lease(threads=3, tensor_parallel=2, pipeline_parallel=1, nodes=2).cores == 3
    assert lease(on_gpu=True, threads=3).cores == 0


@pytest.mark.parametrize(
    ("cores", "words", "binding"),
    [
        ("4,5", "serve M", "4,5"),
        ("4,5,6,7", "serve M --tensor-parallel-size 2", "4,5|6,7"),
        ("4,5", "serve M --tensor-parallel-size 2 --pipeline-parallel-size 2 --nnodes 2", "4|5"),
        # Where the runtime had no cores for it, or not as many for each worker.
        ("", "serve M", "nobind"),
        ("4,5,6", "serve M --tensor-parallel-size 2", "nobind"),
    ],
)
def test_vllms_workers_are_bound_to_these_cores_each(
    cores: str, words: str, binding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environ = {"AGENTC_CORES": cores} if cores else {}
    with prepare_machine(environ, words.split()):
        assert environ["VLLM_CPU_OMP_THREADS_BIND"] == binding


@pytest.fixture
def short() -> Iterator[Path]:
    """A temporary folder whose path leaves room for names of sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_a_vllm_server_leaves_no_files(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home of its user is left alone; a server that was killed is cleaned up after."""
    home = short / f"agentc-vllm-{os.getuid()}"
    killed = home / "runs" / "killed"
    alive = home / "runs" / "alive"
    for folder in (killed, alive):
        folder.mkdir(parents=True)
        (folder / "lock").touch()
    home.chmod(0o700)
    environ: dict[str, str] = {}
    with (alive / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        monkeypatch.setattr(tempfile, "tempdir", str(short))
        with prepare_machine(environ, ["serve", "M"]) as own:
            assert environ["TMPDIR"] == str(own) == tempfile.gettempdir()
            assert {path.name for path in own.parent.iterdir()} == {"alive", own.name}
        assert [path.name for path in own.parent.iterdir()] == ["alive"]


def test_a_folder_that_others_may_write_is_not_used(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may make a folder of that name in /tmp."""
    (short / f"agentc-vllm-{os.getuid()}").mkdir()
    (short / f"agentc-vllm-{os.getuid()}").chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    environ: dict[str, str] = {}
    with prepare_machine(environ, ["serve", "M"]) as own:
        folder = own.parent.parent
    assert folder.name.startswith(f"agentc-vllm-{os.getuid()}-")
    assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_whose_name_is_taken_is_replaced_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Next to it, not in TMPDIR, whose path may be too long for sockets."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("a" * 80)))
    taken = tmp_path / "taken"
    taken.mkdir()
    taken.chmod(0o777)
    folder = private_folder(taken)
    assert folder != taken
    assert (folder.parent, folder.stat().st_mode & 0o077) == (tmp_path, 0)


def test_more_memory_than_there_is_is_refused_before_vllm_is_started() -> None:
    with pytest.raises(SystemExit) as said:
        require_memory({"VLLM_CPU_KVCACHE_SPACE": "64"}, 24_000.0)
    assert "cpu_kv_cache_gb is 64, and there are 23.4 GiB of memory" in str(said.value)
    log = [str(said.value)]
    assert find_cause(log, CAUSES).startswith("cpu_kv_cache_gb is 64")
    for there in (24_000.0, None):
        require_memory({"VLLM_CPU_KVCACHE_SPACE": "8"}, there)
    require_memory({"VLLM_CPU_KVCACHE_SPACE": "64"}, None)


def test_sockets_have_short_paths_whatever_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM names a socket by a UUID in there, and the kernel takes 107 bytes."""
    long = tmp_path / ("a" * 80)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    environ: dict[str, str] = {}
    with prepare_machine(environ, ["serve", "M"]) as own, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{environ['TMPDIR']}/{uuid.uuid4()}")
    assert not own.exists()
