"""One copy of a shared server: started, watched, and ended when nobody uses it any more.

A process of its own (`agentc.runtime.serve host`), locally or as a SLURM job; it ends by itself
when the leases of its users have run out, whoever was killed.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from agentc.program.import_report import read_reports
from agentc.program.job import write_json
from agentc.runtime.machine import process
from agentc.runtime.machine.hardware import DevicesError, MachineProbe
from agentc.runtime.machine.output_filters import Redactor
from agentc.runtime.machine.process import StoppedError
from agentc.runtime.machine.supervise import Supervisor
from agentc.runtime.servers import server_group, server_process
from agentc.runtime.servers.shared_server_files import (
    CopyFolder,
    ServerFolder,
    lease_seconds,
    modified,
    node_name,
)
from agentc.runtime.software import job_software, variables
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import PlanFile, module_of
from agentc.runtime.unit_devices import UnitDevices

ADDRESS_VARIABLE = "AGENTC_NODE_ADDRESS"
"""The address of this node that others reach; without it, what its name means."""
RESTARTS = 2
_PAUSES_S = (1.0, 5.0)
_BEAT_S = 1.0
_LINGER_S = 5.0
_LOCK_WAIT_S = 15.0


class Host:
    """Runs one copy to its end."""

    def __init__(
        self,
        layout: StoreLayout,
        plan: PlanFile,
        server: Mapping[str, Any],
        number: int,
        across: bool,
        gpus: int | None = None,
    ) -> None:
        """`gpus` are those that it leases; None: it has what is visible."""
        self.layout = layout
        self.plan = plan
        self.server = server
        self.folder = ServerFolder(layout, server)
        self.copy: CopyFolder = self.folder.copies()[number - 1]
        self.name = self.folder.name_of(self.copy)
        self.across = across
        self.generation = ""
        self._asked = {} if gpus is None else {"gpu": str(gpus)}
        self._devices: UnitDevices | None = None
        self._used = time.monotonic()
        self._reason: str | None = None
        self._next_look = 0.0

    def run(self) -> int:
        """Serve until nobody needs it: 0. 1 when it failed, 128+n when told to stop."""
        self.folder.prepare()
        held = self._lock()
        if held is None:
            print("another process serves this copy already")
            return 0
        try:
            token = self.folder.token()
            variables.declare_secrets(self.plan.secret_names())
            secrets = job_software.resolve_secrets(
                self.server["lease"].get("secrets") or {}, sent=True
            )
            self._fresh_log()
            self._beat()
            threading.Thread(target=self._keep_beating, daemon=True).start()
            redactor = Redactor([token, *secrets.values()])
            mark = process.mark(self.name, str(self.layout.root))
            self._record_state("starting")
            shown = self._lease_devices(mark, redactor)
            if self._reason is not None:
                self._record_state("ended", self._reason)
                return 0
            with Supervisor(mark, redactor) as supervisor:
                return self._serve(supervisor, token, secrets, shown)
        except StoppedError as error:
            self._record_state("ended", f"it was asked to stop ({error}){_in_slurm()}")
            return 128 + error.number
        except (
            job_software.SoftwareError,
            server_process.LeaseError,
            DevicesError,
            OSError,
        ) as error:
            self._record_state("failed", str(error))
            return 1
        finally:
            if self._devices is not None:
                self._devices.release()
            if self.copy.endpoint().get("generation") == self.generation:
                self.copy.clear()
            os.close(held)

    def _lease_devices(self, mark: str, redactor: Redactor) -> Mapping[str, str]:
        """Wait for the GPUs of this copy, as long as anybody needs it; returns the variables that
        show them to its program. Raises DevicesError, StoppedError."""
        if not self._asked:
            return {}

        def wait(until: Callable[[], bool]) -> None:
            with Supervisor(mark, redactor) as supervisor:
                supervisor.wait(lambda: self._over() or until(), every=0.2)

        self._devices = UnitDevices(self._asked, os.environ, str(self.server["id"]))
        self._devices.acquire(wait, lambda text: self._record_state("starting", "waiting " + text))
        return self._devices.whole()

    def _serve(
        self,
        supervisor: Supervisor,
        token: str,
        secrets: Mapping[str, str],
        shown: Mapping[str, str],
    ) -> int:
        servers: list[server_process.ServerProcess] = []
        for number in range(RESTARTS + 1):
            self.generation = uuid.uuid4().hex
            self._record_state("starting")
            server = self._server(supervisor, token, secrets, shown)
            servers[:] = [server]
            # What cannot start now would not start the next time either: LeaseError.
            if server_group.start_all([server], supervisor, over=self._over):
                self._publish(server, token)
                supervisor.wait(lambda: self._over() or bool(server_group.dead(servers)))
            if self._reason is not None:
                self.copy.clear()
                server_group.end_all([server], supervisor)
                self._record_state("ended", self._reason)
                return 0
            message = server_group.death_message(server)
            self.copy.clear()
            server_group.end_all([server], supervisor)  # what it has left, its cores too
            if number == RESTARTS:
                break
            self._record_state("restarting", message)
            supervisor.wait(self._over, timeout=_PAUSES_S[number])
        self._record_state("failed", f"{message}\nit had been started {RESTARTS + 1} times")
        return 1

    def _server(
        self,
        supervisor: Supervisor,
        token: str,
        secrets: Mapping[str, str],
        shown: Mapping[str, str],
    ) -> server_process.ServerProcess:
        """The server's program in its software stack, ready to be started."""
        spec = dict(self.server["lease"])
        lock, text = self.plan.lock(spec["software"])
        with supervisor.interruptible():
            built, record = job_software.ensure_software(
                self.layout, lock, text, lambda line: self._record_state("starting", line)
            )
        module = module_of(spec["program"])
        code = job_software.code_directory(self.layout, [module], self.plan.code())
        resources = self.server.get("resources") or {}
        variables = job_software.job_variables(
            code,
            resources.get("cpus") or 1,
            bool(self.server.get("network")),
            secrets,
            job_software.programs_of(built, record),
        )
        host = node_address() if self.across else "127.0.0.1"
        if self.across and not any("{host}" in word for word in spec["program"]):
            # Environment servers take it as an option; of two equal ones the last holds.
            spec["program"] = [*spec["program"], "--host", "{host}"]
        model = self.server.get("model")
        server = server_process.ServerProcess(
            spec,
            python=job_software.python_command(built, record, self.layout.root, code),
            variables={**variables, **shown},
            model=self.layout.data(model) if model else None,
            folder=self.copy.path,
            logs=self.copy.logs,
            host=host,
        )
        server.token = token
        server.software = {"lock": record["lock"], "python": record["python"]}
        return server

    def _publish(self, server: server_process.ServerProcess, token: str) -> None:
        """Tell users where it listens."""
        told = server.manifest()
        self.copy.write_endpoint(
            {
                "url": server.url,
                "token": token,
                "generation": self.generation,
                "log": str(server.log),
                "log_begins": server.log_begins,
                "node": node_name(),
                "software": {**server.software, **read_reports(server.imported)},
                **server.account,
                "ready_s": told.get("ready_s"),
                "hardware": MachineProbe().describe(),
            }
        )
        self._record_state("ready")

    def _over(self) -> bool:
        """Whether this copy should end now; asked of the disk once a second."""
        if self._reason is None and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _BEAT_S
            self._reason = self._reason_to_end()
        return self._reason is not None

    def _reason_to_end(self) -> str | None:
        endpoint = self.copy.endpoint()
        if endpoint and endpoint.get("generation") != self.generation:
            return "another process serves in its place"
        now = time.monotonic()
        users = self.folder.users(modified(self.copy.beat_file))
        if any(self._needs(user) for user in users):
            self._used = now
        elif any(user.get("waiting_for") for user in users):
            return "all that it was started for is done"
        elif now - self._used > min(_LINGER_S, lease_seconds()):
            return "nobody uses it any more"
        return None

    def _needs(self, user: Mapping[str, Any]) -> bool:
        """Whether a user still needs it: a job while it runs, a run while it lacks results of the
        jobs that use it."""
        objects = user.get("waiting_for")
        if objects is None:
            return True
        return not all(map(self.layout.is_published, objects))

    def _record_state(self, state: str, message: str = "") -> None:
        said: dict[str, Any] = {
            "state": state,
            "generation": self.generation,
            "message": message,
            "host": os.uname().nodename,
            "node": node_name(),
            "pid": os.getpid(),
            "time": time.time(),
        }
        if self._devices is not None and self._devices.names:
            said["gpus"] = self._devices.names
        if os.environ.get("SLURM_JOB_ID"):
            said["slurm"] = os.environ["SLURM_JOB_ID"]
        write_json(self.copy.state_file, said)
        print(f"{time.strftime('%H:%M:%S')} {state} {message}", flush=True)

    def _lock(self) -> int | None:
        """The lock of this copy; None when somebody alive holds it. The lock of a node that is
        lost may stay: who is not heard of holds nothing."""
        path = self.layout.lock(self.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(str(path), os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + _LOCK_WAIT_S
        before = modified(self.copy.beat_file)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
            except BlockingIOError:
                if time.monotonic() > deadline:
                    if modified(self.copy.beat_file) == before:
                        return descriptor
                    os.close(descriptor)
                    return None
                time.sleep(0.1)

    def _fresh_log(self) -> None:
        """What an earlier server said must not be taken for the words of this one."""
        log = self.copy.logs / (self.server["lease"]["role"] + ".log")
        with suppress(FileNotFoundError):
            log.replace(log.with_suffix(".earlier.log"))

    def _beat(self) -> None:
        with self.copy.beat_file.open("w") as out:
            out.write(f"{time.time():f}\n")

    def _keep_beating(self) -> None:
        while True:
            time.sleep(_BEAT_S)
            with suppress(OSError):
                self._beat()


def node_address() -> str:
    """The address at which other nodes reach this one. Raises LeaseError."""
    given = os.environ.get(ADDRESS_VARIABLE)
    if given:
        return given
    found: list[str] = []
    with suppress(OSError):
        answers = socket.getaddrinfo(os.uname().nodename, None, socket.AF_INET, socket.SOCK_STREAM)
        found += [str(answer[4][0]) for answer in answers]
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Nothing is sent: it only asks which address would be used (192.0.2.1 is for examples).
        probe.connect(("192.0.2.1", 9))
        found.append(str(probe.getsockname()[0]))
    for address in found:
        if not address.startswith("127."):
            return address
    raise server_process.LeaseError(
        f"other nodes cannot reach this one: its name ({os.uname().nodename}) means a loopback "
        f"address; export {ADDRESS_VARIABLE}=... "
        "with the address to listen on"
    )


def _in_slurm() -> str:
    job = os.environ.get("SLURM_JOB_ID")
    return f" as SLURM job {job}: cancelled, or its time limit" if job else ""
