"""Subject: a job of a plan, or of the past, by what its cost depends on.

plan.json and manifests name the same things; both are read here, and nowhere else in the package.
Settings are those of the stage kinds, so that a backend from elsewhere is estimated as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agentc.cost.hardware import Machine, cpu_machine, gpu_machine, machine_of
from agentc.kinds import KINDS

COMPUTE_CPUS = 2
"""Cores of a job whose manifest does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A leased server: `own` is False where none is started, for a remote endpoint and an
    environment in the job's own process."""

    backend: str
    identity: str
    own: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """`object` is `<kind>/<key>`; `inputs` maps roles to objects; `settings` are the semantic ones
    by dotted path, without defaults."""

    object: str
    id: str
    kind: str
    backend: str
    machine: Machine
    inputs: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, Any]
    config: Mapping[str, Any]
    facts: Mapping[str, Any]
    placement: Mapping[str, Any]
    servers: Mapping[str, Server]
    processes: int = 1
    prompt_characters: int = 0
    cpus: int = 1
    gpus: int = 0
    stage: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """A manifest's `facts`, times and leases; empty for a job of a plan."""

    def setting(self, name: str) -> Any:
        """A setting of the kind: what the spec set, else its default; null stays null."""
        found = self.settings.get(name)
        return defaults_of(self.kind).get(name) if found is None else found

    def number(self, name: str, otherwise: float) -> float:
        """A setting as a number."""
        found = self.setting(name)
        return float(found) if isinstance(found, (int, float)) else otherwise

    def all_inputs(self) -> tuple[str, ...]:
        """Every input object."""
        return tuple(name for names in self.inputs.values() for name in names)


def subject_of_job(job: Mapping[str, Any], gpu: str) -> Subject:
    """A job of plan.json; `gpu` is the type that its GPUs are taken for."""
    asked = job.get("resources") or {}
    cpus, gpus = int(asked.get("cpus") or 1), int(asked.get("gpus") or 0)
    return _subject(
        job,
        cpus=cpus,
        gpus=gpus,
        machine=gpu_machine(gpu, gpus) if gpus else cpu_machine(cpus),
        measured={},
    )


def subject_of_manifest(manifest: Mapping[str, Any]) -> Subject:
    """A finished job. Raises KeyError or TypeError for what is no manifest of a job."""
    asked = manifest.get("resources") or {}
    hardware = manifest.get("hardware") or {}
    cpus = int(asked.get("cpus") or min(COMPUTE_CPUS, int(hardware.get("cpus") or 1)))
    gpus = int(asked.get("gpus") or 0)
    return _subject(
        manifest,
        cpus=cpus,
        gpus=gpus,
        machine=machine_of(hardware, cpus, gpus),
        measured=manifest,
    )


@lru_cache
def defaults_of(kind: str) -> Mapping[str, Any]:
    """Defaults of a stage kind by dotted path; an evaluation's episodes are a rollout."""
    known = next((each for each in KINDS if each.name == kind), None)
    table: dict[str, Any] = {}
    for each in known.fields if known is not None else ():
        if each.fields and each.default is not None:
            table |= {f"{each.name}.{inner.name}": inner.default for inner in each.fields}
        else:
            table[each.name] = None if each.required else each.default
    return table


def _subject(
    source: Mapping[str, Any],
    *,
    cpus: int,
    gpus: int,
    machine: Machine,
    measured: Mapping[str, Any],
) -> Subject:
    identity = source.get("identity") or {}
    facts = identity.get("facts") or {}
    prompt = facts.get("prompt")
    return Subject(
        object=f"{source['kind']}/{source['key']}",
        id=str(source["id"]),
        stage=str(source.get("stage") or source["id"]),
        kind=str(source["kind"]),
        backend=str(source["backend"]),
        machine=machine,
        inputs={role: tuple(names) for role, names in (source.get("inputs") or {}).items()},
        settings=identity.get("settings") or {},
        config=source.get("config") or {},
        facts=facts,
        placement=source.get("placement") or {},
        servers={
            str(lease["role"]): Server(
                backend=str(lease["backend"]),
                identity=_text(lease.get("identity")),
                own=lease.get("environment") is not None and not _inside(lease),
            )
            for lease in source.get("leases") or ()
        },
        processes=int(source.get("processes") or 1),
        prompt_characters=_characters(prompt) if isinstance(prompt, dict) else 0,
        cpus=cpus,
        gpus=gpus,
        measured=measured,
    )


def _text(identity: Any) -> str:
    return json.dumps(identity, sort_keys=True) if identity else "{}"


def _characters(prompt: Mapping[str, Any]) -> int:
    texts = [str(prompt.get(name) or "") for name in ("system", "instruction", "acknowledgement")]
    for example in prompt.get("examples") or ():
        texts += [str(message.get("content") or "") for message in example]
    return sum(map(len, texts))


def _inside(lease: Mapping[str, Any]) -> bool:
    """Whether a lease, of a plan or of a manifest, is of an environment in the job's process."""
    return lease.get("port") == "inside" or bool(lease.get("inside"))
