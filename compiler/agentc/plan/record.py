"""JobRecord: what a plan.json says about one job's identity, for comparing two plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentc.kinds import kind_named
from agentc.kinds.field import Field, Json


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """Everything that enters a job's key, as flat paths, and its inputs by job id.

    `own` maps paths such as `settings.beta`, `version`, `environment` or `policy server.backend`
    to values; settings at their defaults are not among them. `inputs` maps a role to ids of the
    producing jobs. `config` is what the program is told, defaults included.
    """

    id: str
    stage: str
    kind: str
    key: str
    backend: str
    own: Mapping[str, Json]
    inputs: Mapping[str, tuple[str, ...]]
    config: Mapping[str, Json]

    @property
    def object(self) -> str:
        """The store's name of what the job makes."""
        return f"{self.kind}/{self.key}"

    def default(self, path: str) -> Json:
        """What a setting (`settings.decode.temperature`) is when nobody sets it: the kind's
        default, or, for a backend's own setting, what its program is told. None when unknown."""
        names = path.split(".")[1:]
        kind = kind_named(self.kind)
        fields: Sequence[Field] = () if kind is None else kind.fields
        found: Field | None = None
        value: Json = dict(self.config)
        for name in names:
            found = next((field for field in fields if field.name == name), None)
            fields = () if found is None else found.fields
            value = value.get(name) if isinstance(value, dict) else None
        if found is not None and isinstance(found.default, (str, int, float, bool)):
            return found.default
        return None if isinstance(value, (dict, list)) else value


def read_records(document: Mapping[str, Json]) -> dict[str, JobRecord]:
    """The jobs of a plan document by id, in plan order."""
    jobs = [job for job in _list(document.get("jobs")) if isinstance(job, dict)]
    makers: dict[str, str] = {}
    for job in jobs:
        makers.setdefault(f"{job.get('kind')}/{job.get('key')}", str(job.get("id")))
    locks = {
        name: entry.get("lock") if isinstance(entry, dict) else None
        for name, entry in _table(document.get("environments")).items()
    }
    return {str(job.get("id")): _record(job, makers, locks) for job in jobs}


def _record(
    job: Mapping[str, Json], makers: Mapping[str, str], locks: Mapping[str, Json]
) -> JobRecord:
    own: dict[str, Json] = {
        "kind": job.get("kind"),
        "backend": job.get("backend"),
        "version": job.get("version"),
        "environment": locks.get(str(job.get("environment"))),
    }
    for part, value in _table(job.get("identity")).items():
        _flatten(part, value, own)
    for lease in _list(job.get("leases")):
        if not isinstance(lease, dict):
            continue
        server = f"{lease.get('role')} server"
        own[f"{server}.backend"] = lease.get("backend")
        own[f"{server}.version"] = lease.get("version")
        own[f"{server}.environment"] = locks.get(str(lease.get("environment")))
        for name, value in _table(lease.get("identity")).items():
            _flatten(f"{server}.{name}", value, own)
    return JobRecord(
        id=str(job.get("id")),
        stage=str(job.get("stage")),
        kind=str(job.get("kind")),
        key=str(job.get("key")),
        backend=str(job.get("backend")),
        own=own,
        config=_table(job.get("config")),
        inputs={
            role: tuple(makers.get(str(name), str(name)) for name in _list(names))
            for role, names in _table(job.get("inputs")).items()
        },
    )


def flat_paths(value: Json) -> dict[str, Json]:
    """The values of a mapping by dotted path; of anything else, nothing."""
    found: dict[str, Json] = {}
    for name, item in _table(value).items():
        _flatten(name, item, found)
    return found


def _flatten(path: str, value: Json, into: dict[str, Json]) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            _flatten(f"{path}.{name}", item, into)
    else:
        into[path] = value


def _table(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
