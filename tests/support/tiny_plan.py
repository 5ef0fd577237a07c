"""Tiny plans for tests of the runtime: real programs in an empty software stack.

`TinyPlan` writes a plan.json with a lock that pins nothing, so that its stack is built in
a tenth of a second; programs are the scripts in `programs/`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S

from agentc.runtime.software.lock_text import lock_digest

PROGRAMS = Path(__file__).parent / "programs"
LOCK = "# a stack without packages\n"


def key_of(text: str) -> str:
    """A key that looks like the compiler's."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class TinyPlan:
    """A plan under construction, with a store beside it."""

    def __init__(self, folder: Path, name: str = "tiny") -> None:
        self.folder = folder / "plan"
        self.store = folder / "store"
        self.path = self.folder / "plan.json"
        self.outlived = folder / "outlived"
        """What daemons write that nobody has ended."""
        self.name = name
        self.jobs: list[dict[str, Any]] = []
        self.sessions: list[dict[str, Any]] = []
        self.servers: list[dict[str, Any]] = []
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "software").mkdir(exist_ok=True)
        self.stacks: dict[str, Any] = {}
        self.software("empty", LOCK)

    def software(self, name: str, lock: str) -> None:
        """Add a software stack."""
        file = f"software/{name}.txt"
        (self.folder / file).write_text(lock)
        digest = lock_digest(lock)
        self.stacks[name] = {"lock": digest, "file": file}

    def job(
        self,
        name: str,
        program: str = "rows.py",
        *,
        kind: str = "rollout",
        produces: str = "Trajectories",
        inputs: dict[str, list[str]] | None = None,
        leases: list[dict[str, Any]] | None = None,
        contract: dict[str, Any] | None = None,
        resume: bool = False,
        resources: dict[str, Any] | None = None,
        software: str = "empty",
        **config: Any,
    ) -> dict[str, Any]:
        """Add a job; `inputs` maps roles to ids of earlier jobs. Returns its entry."""
        objects = {
            role: [self.object(parent) for parent in parents]
            for role, parents in (inputs or {}).items()
        }
        described = json.dumps([name, program, config, objects, leases or []], sort_keys=True)
        entry = {
            "id": name,
            "stage": name,
            "kind": kind,
            "backend": "tiny." + kind,
            "version": 1,
            "key": key_of(described),
            "produces": produces,
            "round": None,
            "software": software,
            "program": [str(PROGRAMS / program)],
            "processes": 1,
            "inputs": objects,
            "config": config,
            "placement": {},
            "identity": {"settings": config, "facts": {}},
            "leases": leases or [],
            "contract": contract or {},
            "resources": {"cpus": 1, "gpus": 0, "mem_mb": None, "minutes": None}
            | (resources or {}),
            "resume": resume,
            "origin": {"file": "tiny.yaml", "line": 1, "column": 1, "steps": []},
        }
        if resources:
            # As a spec's `placement:` says it, for whoever submits the job.
            entry["asked"] = {
                name: {"value": value, "file": "tiny.yaml", "line": 1}
                for name, value in resources.items()
            }
        self.jobs.append(entry)
        return entry

    def lease(self, role: str = "policy", script: str = "server.py", **fields: Any) -> Any:
        """A lease of the tiny server; see `programs/server.py` for its arguments."""
        arguments = fields.pop("arguments", [])
        port = fields.get("port", "chosen")
        where = ["--port", "{port}"] if port == "held" else ["--ready-file", "{ready_file}"]
        served = ["--model", "{model}", "--name", "{served_name}"] if role == "policy" else []
        return {
            "role": role,
            "backend": "serve.tiny" if role == "policy" else "env.tiny",
            "version": 1,
            "software": "empty",
            "program": [str(PROGRAMS / script), *where, *served, *arguments],
            "port": "chosen",
            "probe": "/health",
            "identity_check": "model" if role == "policy" else "environment",
            "expect": {},
            "url": None,
            "input": "model" if role == "policy" else None,
            "variables": {},
            "secrets": {},
            "ready_timeout_s": 20.0,
            "served_name": "policy",
            "identity": {},
        } | fields

    def session(self, name: str, *members: str) -> None:
        """Add a session over jobs."""
        key = key_of("session " + " ".join(self.object(member) for member in members))
        self.sessions.append({"id": name, "key": key, "members": list(members)})

    def share(
        self, name: str, *jobs: str, role: str = "policy", scope: str = "shared", replicas: int = 1
    ) -> dict[str, Any]:
        """Make the lease of that role, the same one in all these jobs, a shared server."""
        found = [job for job in self.jobs if job["id"] in jobs]
        leases = [one for job in found for one in job["leases"] if one["role"] == role]
        role_input = leases[0]["input"]
        entry = {
            "id": "server/" + name,
            "key": key_of("server " + json.dumps(leases[0], sort_keys=True)),
            "scope": scope,
            "replicas": replicas,
            "lease": dict(leases[0]),
            "model": found[0]["inputs"][role_input][0] if role_input else None,
            "resources": {"cpus": 1, "gpus": 0, "mem_mb": None, "minutes": None},
            "placement": {},
            "network": False,
            "clients": list(jobs),
        }
        for job in found:
            job["leases"] = [
                {**one, "server": entry["id"]} if one["role"] == role else one
                for one in job["leases"]
            ]
        self.servers.append(entry)
        return entry

    def object(self, job_id: str) -> str:
        """The object of a job of this plan, or of a session."""
        for job in self.jobs:
            if job["id"] == job_id:
                return f"{job['kind']}/{job['key']}"
        for session in self.sessions:
            if session["id"] == job_id:
                return f"session/{session['key']}"
        raise KeyError(job_id)

    def document(self) -> dict[str, Any]:
        """The plan as written."""
        made = [f"{job['kind']}/{job['key']}" for job in self.jobs]
        used = {parent for job in self.jobs for ids in job["inputs"].values() for parent in ids}
        return {
            "plan": 2,
            "name": self.name,
            "spec": {"file": "tiny.yaml", "sha256": "0" * 64},
            "params": {},
            "software": self.stacks,
            "jobs": self.jobs,
            "sessions": self.sessions,
            **({"servers": self.servers} if self.servers else {}),
            "targets": [name for name in made if name not in used],
            "experiment": {"description": None, "paper": {}, "discrepancies": [], "rounds": []},
        }

    def write(self) -> Path:
        """Write plan.json, whole at any moment: a wrapper that was started before may read it;
        returns its path."""
        text = json.dumps(self.document(), sort_keys=True, indent=2) + "\n"
        beside = self.path.with_suffix(".new")
        beside.write_text(text)
        beside.replace(self.path)
        return self.path

    def argv(self, job: str | None = None, session: str | None = None) -> list[str]:
        """The wrapper's command line."""
        target = ["--job", job] if job is not None else ["--session", str(session)]
        return [
            sys.executable,
            "-m",
            "agentc.runtime.job",
            "--plan",
            str(self.path),
            "--store",
            str(self.store),
            *target,
        ]

    def run(
        self,
        job: str | None = None,
        session: str | None = None,
        asked: str = "",
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run one wrapper to its end; `asked` is what Snakemake says that the job requests."""
        self.write()
        return subprocess.run(
            [*self.argv(job, session), *(["--asked", asked] if asked else [])],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env={**os.environ, **variables},
        )

    def start(
        self, job: str | None = None, session: str | None = None, **variables: str
    ) -> subprocess.Popen[str]:
        """Start one wrapper."""
        self.write()
        return subprocess.Popen(
            self.argv(job, session),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **variables},
        )

    def write_compiled(self) -> Path:
        """Write the plan with its Snakefile, as a compiled directory."""
        from agentc import resources

        shutil.copy(resources.snakefile(), self.folder / "Snakefile")
        return self.write()

    def run_all(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """What `agentc run` does after compiling, to its end."""
        return subprocess.run(
            self.run_all_argv(*words),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env={**os.environ, **variables},
        )

    def start_all(self, *words: str) -> subprocess.Popen[str]:
        """The same, not waited for; what it says is in `stdout`."""
        return subprocess.Popen(
            self.run_all_argv(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run_all_argv(self, *words: str) -> list[str]:
        """The command line of that."""
        self.write_compiled()
        script = Path(__file__).parent / "run_tiny.py"
        return [sys.executable, str(script), str(self.path), str(self.store), *words]

    def published(self, job: str) -> bool:
        """Whether the object of a job exists."""
        return (self.store / "objects" / self.object(job) / "artifact.json").exists()

    def manifest(self, job: str) -> Any:
        """The manifest of a job's object."""
        path = self.store / "objects" / self.object(job) / "artifact.json"
        return json.loads(path.read_text())

    def data(self, job: str) -> Path:
        """The artifact of a job's object."""
        return self.store / "objects" / self.object(job) / "data"

    def staging(self, job: str) -> Path:
        """The staging directory of a job."""
        return self.store / "staging" / self.object(job)

    def status(self, job: str) -> Any:
        """status.json of a staged job; {} when there is none."""
        try:
            return json.loads((self.staging(job) / "status.json").read_text())
        except FileNotFoundError:
            return {}


def drivers_of(store: Path) -> list[int]:
    """Processes whose command line names the store: `agentc run`, Snakemake, wrappers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if str(store).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def processes_of(store: Path) -> dict[int, str]:
    """Processes that carry a mark of this store, with their command lines."""
    from agentc.runtime.machine import process

    suffix = process.mark("", str(store))
    found = {}
    for pid, mark in process.marks().items():
        if mark.endswith(suffix):
            try:
                raw = Path(f"/proc/{pid}/cmdline").read_bytes()
                state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state != "Z":
                found[pid] = raw.replace(b"\0", b" ").decode()
    return found
