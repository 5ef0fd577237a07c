"""One server over several nodes of a SLURM job: its first rank here, the others as one step.

`server_process.py` starts `lead` in place of the server's program. It starts a `follow` on each
other node with `srun`, and the first rank once all of them have called; each follower runs its rank
for as long as its connection to the leader lasts. So whatever kills either side ends the whole
server.
"""

from __future__ import annotations

import argparse
import hmac
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from agentc.program.child import die_with_parent
from agentc.program.job import write_json
from agentc.runtime.machine import process, slurm_nodes
from agentc.runtime.machine.process import STOPPING
from agentc.runtime.servers.job_leases import fill_placeholders

MODULE = "agentc.runtime.servers.server_ranks"
JOIN_S = 300.0
"""How long the other nodes may take to call: a step may have to wait for its nodes."""
GRACE_S = 6.0
"""How long ranks may take to stop; less than the runtime gives to the whole server."""
_POLL_S = 0.2
_SILENCE_S = 30
"""After this much silence of a node's kernel, its connection counts as closed."""


def command(file: Path, program: Sequence[str], ranks: Mapping[str, Any]) -> list[str]:
    """The words that start a server over the job's nodes; `file` is read on each of them."""
    write_json(file, {"program": list(program), **ranks})
    return [sys.executable, "-m", MODULE, "lead", str(file)]


def rank_words(spec: Mapping[str, Any], rank: int, values: Mapping[str, str]) -> list[str]:
    """The command line of one rank."""
    words = [*spec["each"], *(spec["others"] if rank else [])]
    return [*spec["program"], *fill_placeholders(words, {**values, "{rank}": str(rank)})]


class Leader:
    """On the first node: keeps the first rank, the step of the others, and a link to each."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.spec: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        self.nodes = slurm_nodes.allocated_nodes(os.environ)
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.bind(("", 0))
        self._listener.listen(self.nodes)
        self._meeting_port = _free_port()
        self._links: dict[socket.socket, str] = {}
        self._step: subprocess.Popen[bytes] | None = None
        self._first: subprocess.Popen[bytes] | None = None
        self._status: int | None = None
        self._cause = ""

    def run(self) -> int:
        """Serve until the first of all ranks ends, or a signal comes. Raises RendezvousError."""
        for number in STOPPING:
            signal.signal(number, self._note)
        self._start_step()
        deadline = time.monotonic() + JOIN_S
        try:
            while True:
                self._poll()
                if self._status is not None:
                    return self._status
                if self._first is None and time.monotonic() > deadline:
                    self._cause = f"{self._missing()} within {int(JOIN_S)} seconds"
                    return 1
                self._listen()
        finally:
            self._end()
            # Last, so that it is among the lines that people are shown.
            if self._cause:
                _print(self._cause)

    def _start_step(self) -> None:
        hosts = slurm_nodes.hosts(os.environ)[1:]
        again = [sys.executable, "-m", MODULE, "follow", str(self.file)]
        words = slurm_nodes.launcher_on_each_node(again, len(hosts), os.environ, hosts)
        port = self._listener.getsockname()[1]
        self._step = _start(words, slurm_nodes.launcher_variables(os.environ, port))
        _print(f"this is rank 0 of {self.nodes}; on {','.join(hosts)}: {shlex.join(words)}")

    def _poll(self) -> None:
        """Notice that a process has ended: the status is then the server's."""
        if self._status is not None:
            return
        if self._first is not None and self._first.poll() is not None:
            ended = self._first.returncode
            self._status = 128 - ended if ended < 0 else ended
        elif self._step is not None and self._step.poll() is not None:
            self._cause = f"the other ranks' step is over: srun {_how(self._step.returncode)}"
            self._status = 1

    def _listen(self) -> None:
        """Take calls, and notice links that close."""
        ready, _, _ = select.select([self._listener, *self._links], [], [], _POLL_S)
        for source in ready:
            if source is self._listener:
                self._welcome()
                continue
            last = _read_line(source)
            name = self._links.pop(source)
            source.close()
            self._cause = f"{name} {last.get('ended') or 'is gone'}, which ends the server"
            self._status = self._status or 1

    def _welcome(self) -> None:
        link, _ = self._listener.accept()
        link.settimeout(10.0)
        message = _read_line(link)
        offered = str(message.get("token")).encode()
        if not hmac.compare_digest(offered, os.environ.get("AGENTC_TOKEN", "").encode()):
            link.close()
            return
        _keep_alive(link)
        link.sendall(_line({"meeting_port": self._meeting_port, "nodes": self.nodes}))
        self._links[link] = f"rank {message.get('rank')} on {message.get('node')}"
        if len(self._links) == self.nodes - 1:
            # The address that the others have reached is one that they will reach again.
            here = str(link.getsockname()[0])
            values = _values(self.nodes, here, self._meeting_port, here)
            self._first = _start_rank(self.spec, 0, values, None)

    def _missing(self) -> str:
        there = ", ".join(self._links.values()) or "none"
        return f"not all of {self.nodes - 1} other nodes have called ({there})"

    def _end(self) -> None:
        """End all ranks: closed links are what the others heed."""
        for link in (*self._links, self._listener):
            link.close()
        if self._first is not None:
            with suppress(ProcessLookupError):
                self._first.terminate()
        _await_end([each for each in (self._first, self._step) if each is not None])

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._status is None:
            self._status = 128 + number


class Follower:
    """On another node: one rank, for as long as the link to the leader lasts."""

    def __init__(self, file: Path) -> None:
        self.spec: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        self.rank = slurm_nodes.node_rank(os.environ) + 1
        self._stopped = False

    def run(self) -> int:
        """0 when told to end, 1 when the rank ended by itself. Raises RendezvousError."""
        for number in STOPPING:
            signal.signal(number, self._note)
        host, port, _ = slurm_nodes.read_meeting(os.environ)
        try:
            link = socket.create_connection((host, port), timeout=30.0)
        except OSError as error:
            raise slurm_nodes.RendezvousError(
                f"rank {self.rank} cannot reach the first node at {host}:{port}: {error}"
            ) from None
        _keep_alive(link)
        name = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
        greeting = {"token": os.environ.get("AGENTC_TOKEN", ""), "rank": self.rank, "node": name}
        link.sendall(_line(greeting))
        message = _read_line(link)
        if not message:
            return 0
        here, first = str(link.getsockname()[0]), str(link.getpeername()[0])
        values = _values(int(message["nodes"]), first, int(message["meeting_port"]), here)
        link.settimeout(None)
        child = _start_rank(self.spec, self.rank, values, subprocess.PIPE)
        try:
            return self._watch(link, child, f"rank {self.rank} on {name}: ")
        finally:
            link.close()
            process.signal_group(child.pid, signal.SIGTERM)
            _await_end([child])
            process.signal_group(child.pid, signal.SIGKILL)

    def _watch(self, link: socket.socket, child: subprocess.Popen[bytes], label: str) -> int:
        """Copy what the rank says, each line with its name, until it or the link ends."""
        assert child.stdout is not None
        output = child.stdout.fileno()
        held, open_output = b"", True
        while not self._stopped:
            sources: list[Any] = [link, *([output] if open_output else [])]
            ready, _, _ = select.select(sources, [], [], _POLL_S)
            if output in ready:
                chunk = os.read(output, 65536)
                open_output = bool(chunk)
                *lines, held = (held + chunk).split(b"\n")
                if held and not chunk:
                    lines.append(held)
                for line in lines:
                    sys.stdout.buffer.write(label.encode() + line + b"\n")
                sys.stdout.buffer.flush()
            if link in ready:
                return 0
            if output not in ready and child.poll() is not None:
                with suppress(OSError):
                    link.sendall(_line({"ended": _how(child.returncode)}))
                return 1
        return 0

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._stopped = True


def _start(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A process of our group, so that who ends the group ends it too."""
    me = os.getpid()
    return subprocess.Popen(
        list(words),
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: die_with_parent(signal.SIGKILL, me),
    )


def _start_rank(
    spec: Mapping[str, Any], rank: int, values: Mapping[str, str], output: int | None
) -> subprocess.Popen[bytes]:
    words = rank_words(spec, rank, values)
    environment = dict(os.environ)
    for name, text in (spec.get("variables") or {}).items():
        environment[name] = fill_placeholders([text], values)[0]
    print(f"rank {rank}: {shlex.join(words)}", flush=True)
    if output is None:
        return _start(words, environment)
    me = os.getpid()
    return subprocess.Popen(
        words,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: die_with_parent(signal.SIGKILL, me),
    )


def _await_end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Give processes that were told to end time for it, then KILL them."""
    deadline = time.monotonic() + GRACE_S
    while any(each.poll() is None for each in processes) and time.monotonic() < deadline:
        time.sleep(0.05)
    for each in processes:
        if each.poll() is None:
            each.kill()
            each.wait()


def _values(nodes: int, first: str, port: int, here: str) -> dict[str, str]:
    return {
        "{nodes}": str(nodes),
        "{first_node}": first,
        "{meeting_port}": str(port),
        "{node_address}": here,
    }


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _keep_alive(link: socket.socket) -> None:
    """Let the kernel notice a node that is gone without a word."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", _SILENCE_S // 3), ("TCP_KEEPINTVL", _SILENCE_S // 6),
                        ("TCP_KEEPCNT", 4)):  # fmt: skip
        if hasattr(socket, name):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode("utf-8") + b"\n"


def _read_line(link: socket.socket) -> dict[str, Any]:
    """One line of JSON; {} when the other side is gone or says something else."""
    data = b""
    try:
        while not data.endswith(b"\n") and len(data) < 4096:
            chunk = link.recv(1)
            if not chunk:
                return {}
            data += chunk
        message = json.loads(data.decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _how(status: int) -> str:
    return "was killed by signal %d" % -status if status < 0 else f"exited with {status}"


def _print(text: str) -> None:
    print("agentc: " + text, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status of the server, or of one rank."""
    parser = argparse.ArgumentParser(prog=MODULE, description=__doc__)
    parser.add_argument("what", choices=("lead", "follow"))
    parser.add_argument("file", type=Path)
    options = parser.parse_args(argv)
    try:
        if options.what == "lead":
            return Leader(options.file).run()
        return Follower(options.file).run()
    except (slurm_nodes.RendezvousError, OSError) as error:
        _print(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
