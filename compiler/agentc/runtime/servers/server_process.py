"""A server of one job: its program and address, its account, and what manifests say of it.

The fields of a lease are those of `agentc.backend_api.LeaseDraft`. `server_group.py` starts and
ends the servers of a job. What a server must prove before work starts is in `probe.py`; an
environment that a job's program opens in its own process has no server (`job_leases.InsideLease`).
"""

from __future__ import annotations

import binascii
import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.program.import_report import FOLDER_VARIABLE, read_reports
from agentc.program.job import write_json
from agentc.runtime.machine import slurm_nodes
from agentc.runtime.machine.supervise import Child, Supervisor
from agentc.runtime.servers.job_leases import (
    LEASES_VARIABLE,
    fill_placeholders,
    planned_facts,
    write_leases,
)
from agentc.runtime.servers.server_log import last_lines, size_of
from agentc.runtime.store.file_system import explain_start
from agentc.runtime.store.staging import remove_tree

if TYPE_CHECKING:
    from agentc.runtime.machine.device_lease import CoreLease
    from agentc.runtime.servers.probe import HealthWatch


LOOPBACK = "127.0.0.1"
_PORT_TAKEN = ("address already in use", "eaddrinuse", "errno 98")
_PORT_LINES = 400
"""vLLM writes some hundred lines after the one that says so."""


class LeaseError(Exception):
    """A server did not start, is not what was asked for, or died; the message has its last
    lines."""


class ServerProcess:
    """One server. `endpoint` is what the job program is told about it."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        *,
        python: Sequence[str],
        variables: Mapping[str, str],
        model: Path | None,
        folder: Path,
        logs: Path,
        host: str = LOOPBACK,
        name: str | None = None,
    ) -> None:
        """`name` tells its files from those of other servers in these folders; by default there
        is none of the same role."""
        self.role: str = spec["role"]
        self.name = name or self.role
        self.spec = spec
        self.model = model
        self.log = logs / (self.name + ".log")
        self.log_begins = 0
        """Where in its log the last start begins: logs are appended over attempts."""
        self.child: Child | None = None
        self.ready_s = 0.0
        self.software: dict[str, Any] = {}
        self.account: dict[str, Any] = {}
        """What manifests keep of what an environment says of itself (`account_facts`)."""
        self.token = binascii.hexlify(os.urandom(16)).decode("ascii")
        self.url: str | None = spec.get("url")
        self._python = list(python)
        self._variables = dict(variables)
        self._ready_file = folder / (self.name + ".ready.json")
        self._settings_file = folder / (self.name + ".settings.json")
        self._ranks_file = folder / (self.name + ".ranks.json")
        self._leases_file = folder / (self.name + ".leases.json")
        self.needs: dict[str, Any] = {}
        """Other leases of the job, by role, that its program asks; ready before it is started."""
        self.imported = folder / "imported" / self.name
        self._host = host
        self._held: socket.socket | None = None
        self._cores: CoreLease | None = None
        self._watch: HealthWatch | None = None

    @property
    def remote(self) -> bool:
        """Whether the endpoint is somebody else's and nothing is started."""
        return self.spec.get("port") == "none"

    @property
    def endpoint(self) -> dict[str, Any]:
        """`{"url", "token", "model", "log", "client", "identity"}` for the job file."""
        found: dict[str, Any] = {"url": self.url, "token": "" if self.remote else self.token}
        if self.spec.get("served_name"):
            found["model"] = self.spec["served_name"]
        if not self.remote:
            found["log"] = str(self.log)
        for name in ("client", "identity"):
            if self.spec.get(name):
                found[name] = self.spec[name]
        return found

    def start(self, supervisor: Supervisor) -> None:
        """Start the server's program. Raises LeaseError when it cannot be started at all."""
        if self._ready_file.exists():
            self._ready_file.unlink()
        words = {
            "{host}": self._host,
            "{port}": "0",
            "{ready_file}": str(self._ready_file),
            "{model}": str(self.model or ""),
            "{served_name}": str(self.spec.get("served_name") or ""),
            "{settings}": str(self._settings_file),
        }
        if self.spec.get("settings"):
            write_json(self._settings_file, self.spec["settings"])
        if self.spec.get("port") == "held":
            words["{port}"] = str(self._hold_port())
            self.url = http_address(self._host, int(words["{port}"]))
        argv = [*self._python, *fill_placeholders(self.spec["program"], words)]
        ranks = self.spec.get("ranks")
        # Outside of SLURM, or where the profile gives one node, the server is one process.
        if ranks and slurm_nodes.allocated_nodes(os.environ) > 1:
            # Imported late: few servers spread over nodes, and every job would pay for it.
            from agentc.runtime.servers import server_ranks

            argv = server_ranks.command(self._ranks_file, argv, ranks)
        variables = {**self._variables, **fill_variables(self.spec.get("variables") or {}, words)}
        variables["AGENTC_TOKEN"] = self.token
        variables.update(self._take_cores())
        variables[FOLDER_VARIABLE] = str(self.imported)
        if self.needs:
            write_leases(self._leases_file, self.needs)
            variables[LEASES_VARIABLE] = str(self._leases_file)
        remove_tree(self.imported)
        self.log_begins = size_of(self.log)
        try:
            self.child = supervisor.start(
                self.name, argv, cwd=self.log.parent.parent, variables=variables, log=self.log
            )
        except OSError as error:
            cause = explain_start(error) or error
            raise LeaseError(f"the {self.role} server cannot be started: {cause}") from None
        if self._cores is not None:
            self.child.when_ended.append(self._cores.release)

    def port_was_taken(self) -> bool:
        """Whether the server ended because somebody else took its port meanwhile."""
        return self.spec.get("port") == "held" and any(
            sign in last_lines(self.log, _PORT_LINES, self.log_begins).lower()
            for sign in _PORT_TAKEN
        )

    def read_ready_file(self) -> bool:
        """Take the address from the ready file, if it has been written."""
        try:
            ready = json.loads(self._ready_file.read_text(encoding="utf-8"))
            host, port = str(ready["host"]), int(ready["port"])
        except FileNotFoundError:
            return False
        except (ValueError, KeyError, TypeError) as error:
            raise LeaseError(
                f"the {self.role} server wrote a ready file that cannot be read "
                f"({type(error).__name__}: {error}); expected "
                '{"host": ..., "port": ...}, written atomically'
            ) from None
        if self._host != LOOPBACK and host != self._host:
            raise LeaseError(
                f"the {self.role} server was asked to listen on {self._host} and listens on "
                f"{host}: its program does not "
                "heed {host}, so that jobs on other nodes cannot reach it; use `scope: job`"
            )
        self.url = http_address(host, port)
        return True

    def release_port(self) -> None:
        """Stop holding the port: the server listens on it now."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _hold_port(self) -> int:
        self.release_port()
        # A bound socket that does not listen keeps the kernel from giving the port to anybody
        # who asks for a free one, while a server that names it (SO_REUSEADDR) can bind it.
        self._held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind((self._host, 0))
        port: int = self._held.getsockname()[1]
        return port

    def _take_cores(self) -> dict[str, str]:
        """Cores of this machine that no other server has, where its program binds threads; over
        several nodes it binds none: on each other ones may be free."""
        count = int(self.spec.get("cores") or 0)
        if not count or (self.spec.get("ranks") and slurm_nodes.allocated_nodes(os.environ) > 1):
            return {}
        # Imported late: few servers bind threads, and every job would pay for it.
        from agentc.runtime.machine.device_lease import (
            CORES_VARIABLE,
            CoreLease,
            allowed_cores,
            lock_folder,
        )

        if self._cores is None:
            self._cores = CoreLease(lock_folder(os.environ))
        cores = self._cores.acquire(count, allowed_cores())
        return {CORES_VARIABLE: ",".join(map(str, cores))} if cores else {}

    def watch(self) -> None:
        """From now on, ask it for its health, where its lease says how long it may be silent."""
        silence_s = float(self.spec.get("silence_s") or 0.0)
        if not silence_s or self.child is None:
            return
        # Imported late: few servers are asked.
        from agentc.runtime.servers.probe import HealthWatch

        self._watch = HealthWatch(self, silence_s)
        self.child.when_ended.append(self._watch.end)
        self._watch.begin()

    @property
    def fault(self) -> str | None:
        """What is wrong with it while its process lives."""
        return None if self._watch is None else self._watch.fault

    def manifest(self) -> dict[str, Any]:
        """What the manifest of the job says about this lease."""
        found = planned_facts(self.spec)
        if self.name != self.role:
            found["name"] = self.name
        found["ready_s"] = round(self.ready_s, 3)
        if not self.remote:
            found.update(self.software)
            found.update(read_reports(self.imported))
        found.update(self.account)
        if self.child is not None:
            self.child.measure()
            found["cpu_s"] = round(self.child.cpu_s, 3)
            found["max_rss_mb"] = round(self.child.max_rss_mb, 1)
        if self.remote:
            found["url"] = self.url
        return found


def http_address(host: str, port: int) -> str:
    """The URL of a server; the address of an IPv6 host stands in brackets there."""
    return ("http://[%s]:%d" if ":" in host else "http://%s:%d") % (host, port)


def fill_variables(variables: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """The same for the values of environment variables."""
    return {name: fill_placeholders([text], values)[0] for name, text in variables.items()}
