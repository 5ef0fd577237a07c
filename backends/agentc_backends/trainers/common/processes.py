"""The processes of one training: how they are started and ended, which one writes files, and the
decisions that they share.

One process trains in the job itself. Several are started by `torch.distributed.run`, which replaces
the job's process (`accelerate launch --cpu --num_processes 2` silently runs one process). On
several nodes of SLURM one launcher runs on each, and they meet on the first node.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from agentc.program.child import die_with_parent
from agentc.runtime.machine import slurm_nodes

Decision = TypeVar("Decision")


def first_process() -> bool:
    """Whether this process writes files."""
    return os.environ.get("RANK", "0") == "0"


def process_count() -> int:
    """How many processes train."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def decide_on_first(decide: Callable[[], Decision]) -> Decision:
    """The first process's decision, on all of them; only that process calls `decide`."""
    if process_count() == 1:
        return decide()
    import torch.distributed

    decision = [decide() if first_process() else None]
    torch.distributed.broadcast_object_list(decision, src=0)
    # The others' None is replaced.
    return decision[0]  # type: ignore[return-value]


def wait_for_all() -> None:
    """Return when every process has called this."""
    if process_count() > 1:
        import torch.distributed

        torch.distributed.barrier()


def relaunch(module: str, placement: Mapping[str, Any], job_file: str) -> None:
    """Replace this process by the launcher if the job has several processes and they are not
    running yet. Raises RendezvousError."""
    processes = int(placement.get("processes") or 1)
    if processes == 1 or "LOCAL_RANK" in os.environ:
        return
    launcher = slurm_nodes.VARIABLE in os.environ
    if launcher:
        address, port, nodes = slurm_nodes.read_meeting(os.environ)
    else:
        nodes = slurm_nodes.allocated_nodes(os.environ)
    if nodes > 1 and processes % nodes:
        raise slurm_nodes.RendezvousError(
            f"{nodes} nodes cannot share {processes} processes equally: the profile or the cluster "
            "gave another number of nodes than the spec requests"
        )
    sys.stdout.flush()
    sys.stderr.flush()
    if nodes > 1 and not launcher:
        again = [sys.executable, "-m", module, job_file]
        command = slurm_nodes.launcher_on_each_node(again, nodes, os.environ)
        os.execve(command[0], command, slurm_nodes.launcher_variables(os.environ))
    where = ["--standalone"]
    if launcher:
        rank = slurm_nodes.node_rank(os.environ)
        where = ["--nnodes", str(nodes), "--node-rank", str(rank)]
        where += ["--master-addr", address, "--master-port", str(port)]
    command = [sys.executable, "-m", "torch.distributed.run", *where]
    command += ["--nproc-per-node", str(processes // nodes), "--module", module, job_file]
    os.execv(sys.executable, command)


def die_with_launcher() -> None:
    """In a worker: ask the kernel to kill this process when the launcher dies. Workers live in
    sessions of their own, so a signal to the job's process group does not reach them."""
    if _launched():
        die_with_parent(signal.SIGKILL)


def end_worker(status: int) -> None:
    """In a process that is or was part of a group: run the exit handlers and exit with `status` at
    once. Elsewhere do nothing.

    A thread of the process group may still hold the tensors of the last collective. If it releases
    them during the interpreter's shutdown, it cannot take the lock that this needs, and the process
    aborts (SIGABRT, "terminate called without an active exception") after its work is done: to the
    launcher the training has failed.
    """
    torch = sys.modules.get("torch")
    if _launched() or (torch is not None and torch.distributed.is_initialized()):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _launched() -> bool:
    return "LOCAL_RANK" in os.environ and "TORCHELASTIC_RUN_ID" in os.environ
