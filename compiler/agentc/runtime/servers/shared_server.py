"""A job's use of shared servers: found or started, waited for, watched, given back.

`SharedServer` is among the leases of a wrapper what `ServerProcess` is for a server of the job, but
its process is a host's (`shared_server_host.py`), perhaps on another node.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentc.program.job import read_json, recorded_account
from agentc.runtime.machine.supervise import Child, Supervisor
from agentc.runtime.servers import shared_server_launch
from agentc.runtime.servers.job_leases import planned_facts
from agentc.runtime.servers.server_log import describe_log
from agentc.runtime.servers.server_process import LeaseError
from agentc.runtime.servers.shared_server_files import (
    LOST_S,
    CopyFolder,
    LeaseRenewal,
    ServerFolder,
    modified,
)
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import PlanFile

RESTARTS = 2
"""How often a job starts over when its shared server was lost."""
_DOUBTFUL_S = 3.0
_POLL_S = 1.0
_ASK_QUEUE_S = 5.0
_PATIENCE_S = 10.0
_KNOCK_S = 1.0
BLAME_S = _DOUBTFUL_S + 3.0
"""So long after a server has fallen silent it is known why."""


class SharedServerLostError(LeaseError):
    """A shared server died or cannot be had. `final` when another start would not help."""

    def __init__(self, message: str, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


class _Replica:
    """One copy as this job found it."""

    def __init__(self, folder: CopyFolder, endpoint: Mapping[str, Any]) -> None:
        self.folder = folder
        self.endpoint = endpoint
        self.lost: str | None = None


class SharedServer:
    """One shared server, as a job uses it. `endpoint` is what the job's program is told."""

    remote = False
    child: Child | None = None

    def __init__(
        self, spec: Mapping[str, Any], folder: ServerFolder, renewal: LeaseRenewal
    ) -> None:
        self.role: str = spec["role"]
        self.spec = spec
        self.folder = folder
        self._renewal = renewal
        self._copies: list[_Replica] = []
        self._next_look = 0.0
        self._gone: str | None = None
        self._asked_queue: dict[str, float] = {}
        self._queue: dict[str, str] = {}
        self._missing_since: dict[str, float] = {}

    @property
    def title(self) -> str:
        """For messages: `the shared policy server server/local.sft (serve.transformers)`."""
        return f"the shared {self.role} server {self.folder.server['id']} ({self.spec['backend']})"

    @property
    def endpoint(self) -> dict[str, Any]:
        """As of a lease of the job's own, with the addresses of all copies under `urls`."""
        urls = [copy.endpoint["url"] for copy in self._copies if copy.lost is None]
        found: dict[str, Any] = {
            "url": urls[0],
            "urls": urls,
            "token": self._copies[0].endpoint["token"],
            "log": self._copies[0].endpoint["log"],
        }
        if self.spec.get("served_name"):
            found["model"] = self.spec["served_name"]
        for name in ("client", "identity"):
            if self.spec.get(name):
                found[name] = self.spec[name]
        return found

    def ready(self, every: bool) -> bool:
        """Whether it can be used: one copy, or `every` one. Raises SharedServerLostError when
        that is not to be expected any more."""
        found = []
        hopeless = []
        copies = self.folder.copies()
        for copy in copies:
            state, endpoint = copy.state(), copy.endpoint()
            answers = state.get("state") == "ready" and bool(endpoint)
            same = endpoint.get("generation") == state.get("generation")
            if answers and same and self._lives(copy):
                found.append(_Replica(copy, endpoint))
                continue
            reason = self._hopeless(copy, state)
            if reason is not None:
                hopeless.append(reason)
        if len(found) == len(copies) or (found and not every):
            self._copies, self._gone = found, None
            return True
        if hopeless and len(hopeless) + len(found) == len(copies) and (every or not found):
            final = all(copy.state().get("state") == "failed" for copy in copies)
            raise SharedServerLostError(f"{self.title} {hopeless[0]}", final=final)
        return False

    def waits_for(self) -> str:
        """What it is waited for, in words."""
        for copy in self.folder.copies():
            state = copy.state()
            if state.get("state") == "ready":
                continue
            words = str(state.get("message") or state.get("state") or "")
            if not words:
                words = self._queue.get(copy.path.name) or "started"
            return "{}: {}".format(self.folder.server["id"], words.split("\n")[0])
        return str(self.folder.server["id"])

    def death(self, sure: bool = False) -> str | None:
        """Why no copy of it answers any more, or None. `sure` looks now, by a knock at the door."""
        now = time.monotonic()
        if self._gone is not None or (now < self._next_look and not sure):
            return self._gone
        self._next_look = now + _POLL_S
        for number, copy in enumerate(self._copies, start=1):
            if copy.lost is None:
                copy.lost = self._loss(copy, sure)
                if copy.lost is not None and len(self._copies) > 1:
                    print(
                        f"agentc: copy {number} of {self.title} is lost: it {copy.lost}",
                        file=sys.stderr,
                    )
        if all(copy.lost is not None for copy in self._copies):
            self._gone = f"{self.title} {self._copies[-1].lost}"
        return self._gone

    def silent(self) -> bool:
        """Whether nothing answers at any of its addresses; `death` may not know why yet."""
        return not any(_accepts(str(copy.endpoint["url"])) for copy in self._copies)

    def manifest(self) -> dict[str, Any]:
        """What the manifest of the job says about it."""
        found = planned_facts(self.spec)
        found["scope"] = self.folder.server["scope"]
        found["server"] = self.spec.get("server")
        found["nodes"] = sorted({str(copy.endpoint.get("node")) for copy in self._copies})
        first = self._copies[0].endpoint
        found.update(first.get("software") or {})
        found["ready_s"] = first.get("ready_s")
        found["hardware"] = first.get("hardware")
        found.update(recorded_account(first))
        return found

    def _lives(self, copy: CopyFolder) -> bool:
        """An endpoint may outlive a killed server: its process is heard of, or still answers."""
        return self._renewal.now() - modified(copy.beat_file) < _DOUBTFUL_S or _accepts(
            str(copy.endpoint().get("url"))
        )

    def _hopeless(self, copy: CopyFolder, state: Mapping[str, Any]) -> str | None:
        """Why a copy that is not ready will not be, or None while it may."""
        name = copy.path.name
        if state.get("state") == "failed":
            return f"failed: {state.get('message')}"
        at_work = state.get("state") in ("starting", "restarting", "ready")
        if at_work and self._renewal.now() - modified(copy.beat_file) < LOST_S:
            self._missing_since.pop(name, None)
            return None
        now = time.monotonic()
        if now - self._asked_queue.get(name, -_ASK_QUEUE_S) >= _ASK_QUEUE_S:
            self._asked_queue[name] = now
            self._queue[name] = shared_server_launch.waits(copy)
        if self._queue[name]:
            self._missing_since.pop(name, None)
            return None
        # A process that was started a moment ago has not said anything yet.
        patience = _DOUBTFUL_S if state.get("state") == "ended" else _PATIENCE_S
        if now - self._missing_since.setdefault(name, now) < patience:
            return None
        reason = state.get("message") or "nothing is heard of it"
        return f"is not there: {reason}{describe_log(copy.path / 'host.log', {})}"

    def _loss(self, copy: _Replica, sure: bool) -> str | None:
        state = copy.folder.state()
        where = f"on {copy.endpoint.get('node')}"
        if state.get("generation") != copy.endpoint["generation"] or state["state"] != "ready":
            reason = str(state.get("message") or "was started again")
            return f"{where}: {reason}"
        silent = self._renewal.now() - modified(copy.folder.beat_file)
        begins = int(copy.endpoint.get("log_begins") or 0)
        tail = describe_log(Path(str(copy.endpoint["log"])), self.spec, begins)
        if silent > LOST_S:
            return (
                f"{where} has not been heard of for {silent:.0f} s: its node or its process is "
                f"gone{tail}"
            )
        url = str(copy.endpoint["url"])
        if (sure or silent > _DOUBTFUL_S) and not _accepts(url):
            # Its host may be about to say why.
            return (
                None
                if silent < _DOUBTFUL_S
                else (f"{where} does not answer at {url} and was killed, for it left no word{tail}")
            )
        return None


class SharedServers:
    """The shared servers of one wrapper. `join` them outside of a supervisor, for what it starts
    must outlive the job; `leave` them in every case."""

    def __init__(
        self, layout: StoreLayout, plan: PlanFile, user: str, gpus: Mapping[str, int]
    ) -> None:
        """`gpus` are those of servers that a job of this machine starts, by their ids."""
        self._layout = layout
        self._gpus = gpus
        self._plan = plan
        self._user = user
        self._renewals: dict[str, LeaseRenewal] = {}
        self._folders: dict[str, ServerFolder] = {}
        self._started: set[str] = set()
        self._declined: set[str] = set()
        self._tries = 0
        self._shown: Callable[[str], Mapping[str, str] | None] = lambda name: None

    def show(self, shown: Callable[[str], Mapping[str, str] | None]) -> None:
        """Start servers of the node with these variables, by their ids; None: each leases its
        GPUs by itself."""
        self._shown = shown

    def join(self, names: set[str]) -> None:
        """Take a lease of each server that is named, and start what does not run. Raises
        LeaseError."""
        for name in sorted(names - self._declined):
            if name not in self._folders:
                folder = ServerFolder(self._layout, self._plan.server(name))
                folder.prepare()
                if _closes(self._layout, folder):
                    self._declined.add(name)
                    continue
                mine = f"job-{self._user.replace('/', '-')}-{os.getpid()}"
                self._folders[name] = folder
                self._renewals[name] = LeaseRenewal(folder.leases / mine, {"kind": "job"})
                self._renewals[name].begin()
            self._start(name)

    def serves(self, server: str | None) -> bool:
        """Whether a lease is one of this shared server; else the job starts one of its own."""
        return bool(server) and server not in self._declined

    def lease(self, spec: Mapping[str, Any]) -> SharedServer:
        """The lease of a server that was joined."""
        name = str(spec["server"])
        return SharedServer(spec, self._folders[name], self._renewals[name])

    def again(self, lost: SharedServerLostError) -> bool:
        """Whether to join once more after a loss."""
        self._tries += 1
        return self._tries <= RESTARTS and not lost.final

    @property
    def tries(self) -> str:
        return f"try {self._tries + 1} of {RESTARTS + 1}"

    def leave(self) -> None:
        """Give all leases back. A server of this node that was started from within this SLURM job
        ends with the job: others that use it are waited for, and nobody may come any more."""
        for renewal in self._renewals.values():
            renewal.end()
        if os.environ.get("SLURM_JOB_ID"):
            for name in sorted(self._started):
                if self._folders[name].per_node:
                    _see_out(self._layout, self._folders[name])

    def _start(self, name: str) -> None:
        folder = self._folders[name]
        launch = read_json(folder.launch_file) if folder.server["scope"] == "shared" else {}
        if not launch:
            shown = self._shown(name)
            launch = shared_server_launch.describe_launch(
                self._plan.path,
                self._layout,
                name,
                None,
                across=False,
                gpus=self._gpus.get(name),
                variables=shown,
            )
        now = self._renewals[name].now()
        users = folder.users(now)
        in_run = any(user.get("kind") == "run" for user in users)
        try:
            if shared_server_launch.ensure(
                self._layout, folder, launch, now, failed_too=not in_run
            ):
                self._started.add(name)
        except (shared_server_launch.ServerLaunchError, OSError) as error:
            raise LeaseError(str(error)) from None


def _closes(layout: StoreLayout, folder: ServerFolder) -> bool:
    copies = folder.copies()
    return folder.closing_file.exists() and any(
        shared_server_launch.locked(layout.lock(folder.name_of(copy))) for copy in copies
    )


def _see_out(layout: StoreLayout, folder: ServerFolder) -> None:
    with folder.exclusive():
        folder.closing_file.touch()
    clock = LeaseRenewal(folder.path / "clock", {})
    while _closes(layout, folder):
        clock.renew()
        if not folder.users(clock.now()):
            return
        time.sleep(_POLL_S)


def await_ready(
    leases: list[SharedServer],
    supervisor: Supervisor,
    report: Callable[[str], None],
) -> None:
    """Wait until each has a copy that can be used. Raises SharedServerLostError, StoppedError."""
    told = [""]

    def ready() -> bool:
        late = [lease for lease in leases if not lease.ready(every=False)]
        if late and late[0].waits_for() != told[0]:
            told[0] = late[0].waits_for()
            report("waiting for the shared server " + told[0])
        return not late

    supervisor.wait(ready, every=0.3)


def _accepts(url: str) -> bool:
    """Whether something listens there."""
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 0), _KNOCK_S).close()
    except OSError:
        return False
    return True
