"""Nodes of a SLURM job: what `scontrol show` says of them, where the processes of one training or
server meet, and one launcher on each node.

The job's program runs on the first node of its allocation; it starts the launchers with `srun`,
and they meet at the first node's address.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence

_PATIENCE_S = 10.0
_AWAY = re.compile(
    r"unable to contact slurm|connect failure|connection (refused|reset|timed out)|"
    r"timed out|zero bytes were transmitted|temporarily un|standby mode|not responding|"
    r"slurm_persist_conn|problem talking to|transport endpoint",
    re.IGNORECASE,
)

_known: dict[tuple[str, str, str], str] = {}


def is_away(output: str) -> bool:
    """Whether these words of a command say that the controller or the accounting daemon does not
    answer, so that it is worth another try."""
    return _AWAY.search(output) is not None


def show(kind: str, name: str) -> str:
    """Its line of `Name=value` words; "" where there is no `scontrol`, or no answer. SLURM is asked
    once for each in a process."""
    scontrol = shutil.which("scontrol")
    if scontrol is None:
        return ""
    known = _known.get((scontrol, kind, name)) or _ask(scontrol, kind, name)
    _known[scontrol, kind, name] = known
    return known


def _ask(scontrol: str, kind: str, name: str) -> str:
    try:
        return subprocess.run(
            [scontrol, "show", kind, "-o", name],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""


VARIABLE = "AGENTC_RENDEZVOUS"
"""`<address>:<port>/<nodes>` in the environment of the launchers."""
_FIRST_PORT, _PORTS = 20000, 12000
"""Below the ports that Linux gives to outgoing connections (from 32768 on)."""
_KEPT = ("SLURM_JOB_ID", "SLURM_CONF", "SLURM_CLUSTER_NAME")


class RendezvousError(Exception):
    """The nodes of the allocation cannot be told, or do not fit; the message is for people."""


def allocated_nodes(environ: Mapping[str, str]) -> int:
    """How many nodes the job has; 1 outside of SLURM."""
    return _allocation(environ)[0]


def _allocation(environ: Mapping[str, str]) -> tuple[int, str]:
    """Number and list of the job's nodes. Variables may be those of a step on one node: Snakemake's
    plugin takes all others away before it starts one. So SLURM is asked."""
    job = environ.get("SLURM_JOB_ID")
    if not job:
        return 1, ""
    nodes = environ.get("SLURM_JOB_NUM_NODES") or "1"
    count, hosts = int(nodes) if nodes.isdigit() else 1, environ.get("SLURM_JOB_NODELIST") or ""
    line = show("job", job)
    match = re.search(r"\bNumNodes=(\d+)", line)
    named = re.search(r" NodeList=(\S+)", line)
    if match and named and int(match.group(1)) >= count:
        return int(match.group(1)), named.group(1)
    return count, hosts


def expand_hosts(text: str) -> list[str]:
    """`n[1-3,07],gpu2` as names, in order: what `scontrol show hostnames` prints."""
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        found = [""]
        for piece in re.split(r"(\[[^\]]*\])", part):
            if not piece.startswith("["):
                found = [name + piece for name in found]
                continue
            ends: list[str] = []
            for each in piece[1:-1].split(","):
                first, dash, last = each.partition("-")
                if dash:
                    width = len(first)
                    ends += [str(n).zfill(width) for n in range(int(first), int(last) + 1)]
                else:
                    ends.append(each)
            found = [name + end for name in found for end in ends]
        names += found
    return names


def hosts(environ: Mapping[str, str]) -> list[str]:
    """The names of the job's nodes, the first one first. Raises RendezvousError."""
    found = expand_hosts(_allocation(environ)[1])
    if not found:
        raise RendezvousError("SLURM names no nodes of this job (SLURM_JOB_NODELIST is not set)")
    return found


def first_address(environ: Mapping[str, str]) -> str:
    """An address of the allocation's first node that its other nodes reach. Raises
    RendezvousError."""
    first = hosts(environ)[0]
    try:
        socket.getaddrinfo(first, None)
        return first
    except OSError:
        pass
    # Names of nodes need not be names of hosts; SLURM knows how it reaches them.
    match = re.search(r"\bNodeAddr=(\S+)", show("node", first))
    if match is None:
        raise RendezvousError(
            f"no address of the node {first} is known: its name does not resolve, and "
            "`scontrol show "
            "node` does not tell one"
        )
    return match.group(1)


def port_of(environ: Mapping[str, str]) -> int:
    """A port that jobs of one node rarely share: all nodes work it out of the job's number."""
    number = environ.get("SLURM_JOB_ID") or "0"
    return _FIRST_PORT + (int(number) if number.isdigit() else 0) % _PORTS


def launcher_on_each_node(
    words: list[str], nodes: int, environ: Mapping[str, str], only: Sequence[str] = ()
) -> list[str]:
    """A command line that runs `words` once on each node of this job's allocation, or on those
    `nodes` that `only` names."""
    srun = shutil.which("srun", path=environ.get("PATH"))
    if srun is None:
        raise RendezvousError(f"srun is not on PATH of {socket.gethostname()}")
    return [
        srun,
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        *(["--nodelist=" + ",".join(only)] if only else []),
        "--overlap",  # the job's own step holds what the allocation has
        "--mem=0",
        "--cpu-bind=none",
        "--kill-on-bad-exit=1",
        "--export=ALL",
        *words,
    ]


def launcher_variables(environ: Mapping[str, str], port: int | None = None) -> dict[str, str]:
    """The environment to start them in; without a port, one worked out of the job's number. srun
    takes SLURM_* variables for options, and those of the step that we are in would bind it to one
    node."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(("SLURM_", "SRUN_", "PMI_", "PMIX_")) or name in _KEPT
    }
    meeting = (first_address(environ), port or port_of(environ), allocated_nodes(environ))
    kept[VARIABLE] = "%s:%d/%d" % meeting
    return kept


def read_meeting(environ: Mapping[str, str]) -> tuple[str, int, int]:
    """Address, port and number of nodes, as the first of them wrote it down."""
    where, _, nodes = environ[VARIABLE].rpartition("/")
    address, _, port = where.rpartition(":")
    return address, int(port), int(nodes)


def node_rank(environ: Mapping[str, str]) -> int:
    """This node's number in the step that runs one task on each node."""
    text = environ.get("SLURM_NODEID", "")
    if not text.isdigit():
        raise RendezvousError("SLURM does not number the nodes (SLURM_NODEID is not set)")
    return int(text)
