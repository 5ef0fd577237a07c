"""Subject: a job of a plan, or of the past, by what its cost depends on.

plan.json and manifests name the same things; both are read here, and nowhere else in the package.
Settings are those of the stage kinds, so that a backend from elsewhere is estimated as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agentc.backend_api.view import ABSENT, Absent, SettingTable, effective
from agentc.cost.hardware import ComputeProfile, cpu_machine, gpu_machine, machine_of
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc.kinds.kind import Counts, Forecast
from agentc.lease_roles import is_model_server
from agentc.plan.job import COMPUTE_CPUS
from agentc.plan.stage_names import of_all_cells

_ROUND = re.compile(r"\.\d+\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProfile:
    """A leased server: `own` is False where none is started, for a remote endpoint and an
    environment in the job's own process. `devices` are the GPUs of one copy. `settings` are what an
    environment is told: of files its identity has digests alone."""

    backend: str
    identity: str
    own: bool = True
    devices: int = 0
    settings: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProfile:
    """`object` is `<kind>/<key>`; `inputs` maps roles to objects; `settings` are the semantic ones
    by dotted path, without defaults."""

    object: str
    id: str
    kind: str
    backend: str
    machine: ComputeProfile
    inputs: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, Any]
    config: Mapping[str, Any]
    facts: Mapping[str, Any]
    placement: Mapping[str, Any]
    servers: Mapping[str, ServerProfile]
    processes: int = 1
    prompt_characters: int = 0
    cpus: int = 1
    gpus: int = 0
    stage: str = ""
    source: str = ""
    """The spec file that the stage is in."""
    model_size: Mapping[str, Any] = field(default_factory=dict)
    """Of the model in a folder that a job of a plan takes (`plan.job.ModelSize`)."""
    expected: Mapping[str, Any] = field(default_factory=dict)
    """What lowering counted (`JobDraft.expected`)."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """A manifest's `facts`, times and leases; empty for a job of a plan."""
    likeness: Hashable = None
    """Of jobs of one plan: equal for those that differ in their inputs alone. None: not known."""

    def setting(self, name: str) -> Any:
        """A setting of the kind: what the spec set, else its default; null stays null."""
        setting = table_of(self.kind).find(name)
        return self.settings.get(name) if setting is None else effective(setting, self._set_value)

    def _set_value(self, parts: Sequence[str]) -> Json | Absent:
        found: Json | Absent = self.settings.get(".".join(parts), ABSENT)
        return found

    def number(self, name: str, otherwise: float) -> float:
        """A setting as a number."""
        value = self.setting(name)
        return float(value) if isinstance(value, (int, float)) else otherwise

    @property
    def alike(self) -> str:
        """What the jobs of a stage have in common in all runs, rounds and cells."""
        return f"{self.source} {_ROUND.sub('.*.', of_all_cells(self.id))}"

    @property
    def forecast(self) -> Forecast:
        """What is counted of a job of its kind."""
        kind = kind_named(self.kind)
        return "rows" if kind is None else kind.forecast

    @property
    def counts(self) -> Counts:
        """The names of the facts that its kind counts by."""
        kind = kind_named(self.kind)
        return Counts() if kind is None else kind.counts

    @property
    def asking(self) -> str | None:
        """The role of the model server that the job's environment asks."""
        return next((r for r in self.servers if is_model_server(r) and r != "policy"), None)

    @property
    def simulator_server(self) -> ServerProfile | None:
        """The model server that the job's program asks."""
        return self.servers.get("policy")

    def all_inputs(self) -> tuple[str, ...]:
        """Every input object."""
        return tuple(name for names in self.inputs.values() for name in names)


def _json_writer() -> Callable[[Any], bytes]:
    # Not above: software in which plans are only read has no orjson.
    import orjson

    def write(part: Any) -> bytes:
        try:
            return orjson.dumps(part)
        except orjson.JSONEncodeError:  # a whole number of more than 64 bits, say
            return repr(part).encode()

    return write


@dataclass(frozen=True, slots=True)
class Likenesses:
    """Tells which jobs of one document cost the same, their inputs aside. A seed costs nothing.

    Jobs repeat the parts of a few bodies, so what is made of a part is kept by its JSON.
    """

    _json: Callable[[Any], bytes] = field(default_factory=_json_writer)
    _texts: dict[bytes, str] = field(default_factory=dict)
    _servers: dict[bytes, ServerProfile] = field(default_factory=dict)

    def of(self, job: Mapping[str, Any], gpu: str) -> Hashable:
        """Equal for jobs that are alike."""
        parts = [job.get(name) for name in ("identity", "config", "placement", "resources")]
        named = (job["kind"], job["backend"], job.get("processes"), gpu)
        return (*named, *map(self._text, parts), *map(self._text, job.get("leases") or ()))

    def server(self, lease: Mapping[str, Any]) -> ServerProfile:
        """What a lease says of its server."""
        written = self._json(lease)
        profile = self._servers.get(written)
        if profile is None:
            profile = self._servers[written] = _server_of(lease)
        return profile

    def _text(self, part: Any) -> str:
        written = self._json(part)
        known = self._texts.get(written)
        if known is None:
            known = self._texts[written] = repr(_without_seeds(part))
        return known


def _without_seeds(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_seeds(part) for name, part in value.items() if name != "seed"}
    return [_without_seeds(part) for part in value] if isinstance(value, list) else value


def subject_of_job(
    job: Mapping[str, Any],
    gpu: str,
    likenesses: Likenesses | None = None,
    most_gpus: int | None = None,
) -> JobProfile:
    """A job of plan.json; `gpu` is the type that its GPUs are taken for, of which there may be
    fewer than it asks for."""
    resources = job.get("resources") or {}
    cpus, gpus = int(resources.get("cpus") or 1), int(resources.get("gpus") or 0)
    gpus = gpus if not most_gpus else min(gpus, most_gpus)
    return _subject(
        job,
        cpus=cpus,
        gpus=gpus,
        machine=gpu_machine(gpu, gpus) if gpus else cpu_machine(cpus),
        measured={},
        likeness=None if likenesses is None else likenesses.of(job, gpu),
        server=_server_of if likenesses is None else likenesses.server,
    )


def subject_of_manifest(manifest: Mapping[str, Any]) -> JobProfile:
    """A finished job. Raises KeyError or TypeError for what is no manifest of a job."""
    resources = manifest.get("resources") or {}
    hardware = manifest.get("hardware") or {}
    cpus = int(resources.get("cpus") or min(COMPUTE_CPUS, int(hardware.get("cpus") or 1)))
    gpus = int(resources.get("gpus") or 0)
    return _subject(
        manifest,
        cpus=cpus,
        gpus=gpus,
        machine=machine_of(hardware, cpus, gpus),
        measured=manifest,
        server=_server_of,
    )


@lru_cache
def table_of(kind: str) -> SettingTable:
    """The settings of a stage kind; none of a kind that is not known any more."""
    known = kind_named(kind)
    return SettingTable(() if known is None else known.fields)


def _subject(
    source: Mapping[str, Any],
    *,
    cpus: int,
    gpus: int,
    machine: ComputeProfile,
    measured: Mapping[str, Any],
    likeness: Hashable = None,
    server: Callable[[Mapping[str, Any]], ServerProfile],
) -> JobProfile:
    identity = source.get("identity") or {}
    facts = identity.get("facts") or {}
    prompt = facts.get("prompt")
    return JobProfile(
        object=f"{source['kind']}/{source['key']}",
        id=str(source["id"]),
        stage=str(source.get("stage") or source["id"]),
        source=str((source.get("origin") or {}).get("file") or ""),
        kind=str(source["kind"]),
        backend=str(source["backend"]),
        machine=machine,
        inputs={role: tuple(names) for role, names in (source.get("inputs") or {}).items()},
        settings=identity.get("settings") or {},
        config=source.get("config") or {},
        facts=facts,
        placement=source.get("placement") or {},
        servers={str(lease["role"]): server(lease) for lease in source.get("leases") or ()},
        processes=int(source.get("processes") or 1),
        prompt_characters=_characters(prompt) if isinstance(prompt, dict) else 0,
        cpus=cpus,
        gpus=gpus,
        model_size=source.get("model_size") or {},
        expected=source.get("expected") or {},
        measured=measured,
        likeness=likeness,
    )


def _server_of(lease: Mapping[str, Any]) -> ServerProfile:
    return ServerProfile(
        backend=str(lease["backend"]),
        identity=_text(lease.get("identity")),
        own=lease.get("software") is not None and not _inside(lease),
        devices=int(lease.get("devices") or 0),
        settings=_text(_as_written(lease.get("settings"))),
    )


def _as_written(settings: Any) -> dict[str, Any]:
    """Settings of a lease as a spec has them: a mapping is a list of pairs there."""
    return {
        name: dict(value) if _is_pairs(value) else value
        for name, value in (settings if isinstance(settings, dict) else {}).items()
    }


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in value
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
