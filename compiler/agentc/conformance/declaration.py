"""What a backend says of itself: its entry point, its words, its pins, and what it imports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from agentc.backend_api import EnvironmentBackend, StageBackend, software_of
from agentc.backend_api.table import GROUP
from agentc.conformance.check import Fault, Skipped, demand
from agentc.conformance.subject import BackendUnderTest, leaves
from agentc.kinds import KINDS, kind_named
from agentc.runtime.software.lock_text import LockTextError, enumerate_names, read_lock_text

HEAVY = (
    "torch", "tensorflow", "jax", "numpy", "pandas", "scipy", "transformers", "tokenizers",
    "datasets", "accelerate", "peft", "trl", "deepspeed", "ray", "vllm", "sglang", "openrlhf",
    "xtuner", "mmengine", "snakemake", "httpx", "httpx2", "starlette", "uvicorn", "gymnasium",
)  # fmt: skip
"""Packages that compiling a spec must not wait for; `agentc check` takes 0.3 s in all."""
_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[^\]]*\])?\s*(==\s*[^\s*;,]+|@\s*\S+)")


def check_entry_point(subject: BackendUnderTest) -> None:
    """The installed table holds this very backend under its own id."""
    backend = subject.backend
    entry = entry_point(backend.id)
    demand(entry.name == backend.id, f"the entry point is called {entry.name}, not {backend.id}")
    loaded = entry.load()
    demand(loaded is backend, f"{entry.value} is another object than the backend tested")


def check_id(subject: BackendUnderTest) -> None:
    """`<family>.<kind>`, `env.<name>` or `serve.<name>`, in words that a spec can write."""
    backend = subject.backend
    demand(
        re.fullmatch(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", backend.id) is not None,
        f"the id {backend.id!r} is not two words of small letters, digits and _ with a dot between",
    )
    if isinstance(backend, StageBackend):
        kinds = ", ".join(kind.name for kind in KINDS)
        demand(kind_named(backend.kind) is not None, f"no kind `{backend.kind}`; kinds: {kinds}")
        family, last = backend.id.split(".")
        demand(
            backend.kind in (family, last),
            f"the id {backend.id} does not say that it does `{backend.kind}`: "
            f"call it {family}.{backend.kind} or {backend.kind}.{last}",
        )
        return
    wanted = "env" if isinstance(backend, EnvironmentBackend) else "serve"
    demand(backend.id.split(".")[0] == wanted, f"the id {backend.id} must begin with {wanted}.")


def check_documentation(subject: BackendUnderTest) -> None:
    """Sentences for people: they become `agentc explain`, the schema and the reference pages."""
    backend = subject.backend
    demand(backend.doc.strip().endswith("."), f"`doc` is no sentence: {backend.doc!r}")
    for path, field, _ in leaves(subject.declared_fields):
        demand(bool(field.doc.strip()), f"the setting `{path}` has no doc")
    demand(backend.version >= 1, f"version {backend.version}: the first is 1")


def check_names(subject: BackendUnderTest) -> None:
    """No setting hides another one, of the backend or of its kind."""
    names = [field.name for field in subject.table]
    twice = sorted({name for name in names if names.count(name) > 1})
    demand(not twice, f"declared twice (the kind's fields count): {', '.join(twice)}")


def check_environment_facts(subject: BackendUnderTest) -> None:
    """Splits, rewards and turns of an environment make sense together, as it declares them under
    the settings that it starts from."""
    assert isinstance(subject.backend, EnvironmentBackend)
    try:
        backend = subject.backend.under(subject.start)
        subject.backend.under({field.name: None for field in subject.declared_fields})
    except Exception as error:
        raise Fault(f"`configured` raises {type(error).__name__}: {error}") from error
    low, high = backend.reward_range
    demand(low < high, f"reward_range {backend.reward_range} is empty")
    demand(low <= backend.success_at <= high, f"success_at {backend.success_at} is out of range")
    demand(backend.max_turns >= 1, f"max_turns {backend.max_turns}: an episode has one at least")
    demand(bool(backend.splits), "no splits: no stage could name its tasks")
    demand(len(set(backend.splits)) == len(backend.splits), "a split is declared twice")


def check_lock(subject: BackendUnderTest) -> None:
    """Every package of the lock is pinned exactly, so that its hash says what was installed."""
    for software in software_of(subject.backend):
        _check_pins(software.name, software.lock)


def _check_pins(name: str, lock: str) -> None:
    try:
        unhashed = read_lock_text(lock).unhashed
    except LockTextError as error:
        raise Fault(f"the lock of `{name}`: {error}") from None
    loose = [line for line in _requirements(lock) if not _pinned(line)]
    demand(
        not loose,
        f"the lock of `{name}` does not pin exactly: {'; '.join(loose[:5])} "
        "(write every package as name==version, or name @ URL)",
    )
    demand(
        not unhashed,
        f"the lock of `{name}` has no hash for {enumerate_names(unhashed)} "
        "(`agentc software hash LOCK` adds them)",
    )


def _requirements(lock: str) -> Iterator[str]:
    for line in lock.replace("\\\n", " ").splitlines():
        text = line.split(" #")[0].strip()
        if text and not text.startswith("#"):
            yield text


def _pinned(line: str) -> bool:
    if line.startswith(("--extra-index-url", "--index-url", "--find-links", "--only-binary",
                        "--no-binary", "--prefer-binary", "--no-build-isolation")):  # fmt: skip
        return True
    bare = re.split(r"\s+--", line)[0].split(";")[0].strip()
    return _PIN.fullmatch(bare) is not None


def check_light_import(subject: BackendUnderTest) -> None:
    """Loading the backend in a fresh process imports nothing heavy and no job program."""
    entry = entry_point(subject.backend.id)
    [found] = ask_elsewhere({"load": entry.value})
    loaded = set(found["modules"])
    heavy = sorted({name.split(".")[0] for name in loaded} & set(HEAVY))
    demand(
        not heavy,
        f"loading {entry.value} imports {', '.join(heavy)}: every `agentc check` would wait for "
        "it; import it in the job program",
    )
    programs = sorted(n for n in loaded if any(p.startswith("job_") for p in n.split(".")))
    demand(not programs, f"loading {entry.value} imports job programs: {', '.join(programs)}")


def ask_elsewhere(*questions: dict[str, Any], hash_seed: str = "4321") -> list[dict[str, Any]]:
    """The answers of `agentc.conformance.elsewhere` in a process of its own, with another hash
    seed and another working directory. Raises Fault with what it printed when it fails."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    if "PYTHONPATH" in kept:
        places = [str(Path(place).absolute()) for place in kept["PYTHONPATH"].split(os.pathsep)]
        kept["PYTHONPATH"] = os.pathsep.join(places)
    done = subprocess.run(
        [sys.executable, "-m", "agentc.conformance.elsewhere"],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=Path(sys.executable).anchor,
        env={**kept, "PYTHONHASHSEED": hash_seed},
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise Fault(f"in a fresh process it fails: {last[0]}")
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def entry_point(name: str) -> EntryPoint:
    """That of an installed backend. Raises Skipped where there is none."""
    found = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not found:
        raise Skipped(f"no installed distribution has an entry point {name} in `{GROUP}`")
    return found[0]
