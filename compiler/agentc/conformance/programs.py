"""The programs that a backend's jobs and servers start: they exist, import what they may, and
read the whole config."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from agentc.conformance.check import Fault, Skipped, demand
from agentc.conformance.subject import BackendUnderTest
from agentc.plan.job import Job
from agentc.program.artifact_files import FACTS_FILE, PROGRESS_FILE
from agentc.program.job import DRY_RUN
from agentc.runtime.software.job_software import (
    JOB_MODULES,
    JOB_PACKAGES,
    SoftwareError,
    code_directory,
    job_variables,
)
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import module_of

_ALLOWED = tuple(
    "agentc." + name.removesuffix(".py").replace("/", ".") + "."
    for name in (*JOB_PACKAGES, *JOB_MODULES)
    if not name.endswith("__init__.py")
)
"""Beginnings of the names that programs may import, each with a dot at its end."""
_LIMIT_S = 120


def check_programs(subject: BackendUnderTest) -> None:
    """Each program is `-m MODULE` of an installed module that does something when run."""
    for program in _programs(subject):
        if len(program) < 2 or program[0] != "-m":
            raise Fault(f"the program {' '.join(program)!r} is not `-m MODULE ...`")
        file = _module_file(program[1])
        if file is None:
            raise Fault(f"there is no module {program[1]}")
        text = file.read_text(encoding="utf-8")
        demand("__main__" in text, f"{program[1]} does nothing under `python -m`: no `__main__`")


def check_program_imports(subject: BackendUnderTest) -> None:
    """Of agentc, job programs import `agentc.program`, the settings of kinds in `agentc.kinds`, and
    what they need of `agentc.runtime`: the rest is not there in their software."""
    for program in _programs(subject):
        for module, name in _imports(program[1]):
            ours = name == "agentc" or name.startswith("agentc.")
            demand(
                not ours or name == "agentc" or f"{name}.".startswith(_ALLOWED),
                f"{module} imports {name}: of agentc, a program may import agentc.program and "
                "agentc.kinds only",
            )


def check_config_read(subject: BackendUnderTest) -> None:
    """The job's program, really started, reads every key of its config."""
    outcome = subject.lower(subject.start)
    untried = []
    for job in () if outcome.codes else outcome.jobs:
        python = subject.pythons.get(outcome.locks[job.software].sha256)
        if python is None:
            untried.append(f"the software stack `{job.software}` is not built here")
            continue
        try:
            _read_config(job, python)
        except Skipped as reason:
            untried.append(str(reason))
    if untried:
        raise Skipped("; ".join(untried))


def _read_config(job: Job, python: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="agentc-conformance-") as name:
        folder = Path(name)
        for part in ("data", "work", "logs"):
            (folder / part).mkdir()
        (folder / "job.json").write_text(json.dumps(_job_file(job, folder)), encoding="utf-8")
        try:
            code = code_directory(StoreLayout(folder), [module_of(job.draft.program)])
        except SoftwareError as error:
            raise Fault(str(error)) from None
        done = subprocess.run(
            [str(python), *job.draft.program, str(folder / "job.json")],
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
            cwd=folder,
            env={**job_variables(code, 1, False, {}), DRY_RUN: "config"},
        )
    last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
    demand("the job program ignored:" not in done.stderr, f"{job.draft.program[1]}: {last}")
    if done.returncode != 0 or DRY_RUN not in done.stdout:
        if "ModuleNotFoundError" in done.stderr or "ImportError" in done.stderr:
            raise Fault(f"{job.draft.program[1]} cannot be imported in `{job.software}`: {last}")
        raise Skipped(
            f"{job.draft.program[1]} does not come to `job.config.assert_all_read()` without its "
            f"inputs ({last})"
        )


def _job_file(job: Job, folder: Path) -> dict[str, object]:
    """A job.json without inputs: what lies before the first look at them can be tried."""
    draft = job.draft
    leases = {one.role: {"url": "http://127.0.0.1:9", "token": "dry", "model": one.served_name,
                         "log": str(folder / "logs" / "log.txt"), "client": dict(one.client)}
              for one in draft.leases}  # fmt: skip
    return {
        "id": job.id,
        "key": job.key,
        "kind": draft.kind,
        "config": draft.config,
        "placement": draft.placement,
        "contract": draft.contract,
        "processes": draft.processes,
        "resources": {"cpus": 1, "gpus": 0},
        "inputs": {},
        "input_objects": {},
        "out": str(folder / "data"),
        "work": str(folder / "work"),
        "logs": str(folder / "logs"),
        "facts": str(folder / FACTS_FILE),
        "progress": str(folder / PROGRESS_FILE),
        "leases": leases,
    }


def _programs(subject: BackendUnderTest) -> list[Sequence[str]]:
    """Programs of the backend's own: a rollout that leases it is the bench's."""
    outcome = subject.lower(subject.start)
    mine = subject.backend.id
    jobs = [job.draft.program for job in outcome.jobs if job.draft.backend == mine]
    leases = [
        lease.draft.program
        for job in outcome.jobs
        for lease in job.leases
        if lease.draft.backend == mine and lease.draft.port != "none"
    ]
    return [*dict.fromkeys([*jobs, *leases])]


@cache
def _module_file(name: str) -> Path | None:
    try:
        found = importlib.util.find_spec(name)
        if found is not None and found.submodule_search_locations is not None:
            found = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, AttributeError, ValueError):
        return None
    return None if found is None or found.origin is None else Path(found.origin)


def _imports(start: str) -> Iterator[tuple[str, str]]:
    """(module, what it imports) of a program and of the modules of its package that it uses."""
    top = start.split(".")[0]
    waiting, seen = [start], {start}
    while waiting:
        module = waiting.pop()
        for name in _imported_by(module):
            yield module, name
            if name.split(".")[0] == top and name not in seen and _module_file(name):
                seen.add(name)
                waiting.append(name)


@cache
def _imported_by(module: str) -> tuple[str, ...]:
    """What a module imports; programs share most of theirs."""
    file = _module_file(module)
    if file is None or file.suffix != ".py":
        return ()
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return tuple(_imported_names(ast.parse(file.read_text(encoding="utf-8")), package))


def _imported_names(tree: ast.Module, package: str) -> Iterator[str]:
    guarded = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in node.body
        for inner in ast.walk(child)
    }
    for node in ast.walk(tree):
        if node in guarded:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            name = ".".join(part for part in (base, node.module or "") if part)
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)


def built_pythons(layout: StoreLayout) -> dict[str, Path]:
    """SHA-256 of a lock -> interpreter, of every software stack that is built here."""
    from agentc.runtime.software.job_software import read_complete

    found: dict[str, Path] = {}
    places = sorted(layout.software.iterdir()) if layout.software.is_dir() else []
    for place in places:
        complete = read_complete(place) if place.is_dir() else None
        if complete is not None:
            found[complete["lock"]] = place / "bin" / "python"
    return found
