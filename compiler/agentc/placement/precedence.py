"""resolve_placement: what each job of a plan asks for under a profile, and who says so.

One rule for every name, strongest first: the profile's `set-resources` (and `set-threads`) for the
rule, the spec's `placement:`, the profile's `default-resources`, defaults. Snakemake gives the
first and the third; `agentc.runtime.placement`, which the Snakefile imports, keeps to the same
order, which tests compare with this. A default of memory is raised to what the job's model needs;
that of cpus, for a job on GPUs, is what its processes keep busy (`agentc.passes.forecast_memory`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentc.placement.profile import Amount, Requests
from agentc.runtime.placement import (
    LOCAL,
    OWN_DEFAULT,
    RESOURCES,
    gpus_of,
    is_local,
    largest_request,
    memory_needed,
)

NAMES = (
    *("partition", "account", "qos", "constraint", "nodes"),
    *("gpus", "gpu_type", "cpus", "mem_mb", "minutes", "retries"),
)
"""What is settled, in the order in which people read it."""
NO_GPU = "nobody requests one"
NEEDED = "what its model needs"
BUSY = "what its processes keep busy"
UNSAID = (OWN_DEFAULT, NO_GPU, BUSY)
RETRIES = 9
"""Further submissions of a job that the cluster cut off, where the spec does not say; profiles say
nothing of it (docs/design/placement.md)."""
SNAKEMAKE_MEMORY = "1000 to 8000, by the size of inputs"
_LEAST_DEFAULT = 1000


@dataclass(frozen=True, slots=True)
class Rejected:
    """A value that another one is stronger than."""

    value: Amount
    source: str


@dataclass(frozen=True, slots=True)
class Placed:
    """What holds: `source` is a line of the spec, a key of the profile, or whose default it is.
    `value` is a text where it is a name or an expression that Snakemake evaluates for each job,
    None where nobody says anything."""

    value: Amount | None
    source: str
    rejected: tuple[Rejected, ...] = ()

    @property
    def number(self) -> int | None:
        """The amount, where it is known beforehand."""
        return self.value if isinstance(self.value, int) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRequest:
    """One job for the cluster: `rule` is Snakemake's, `jobs` are those of the plan that it does
    (several in a session), `object` is what it makes. One that is `local` stays on the submit
    host, for the reason `local_source`: nothing that is placed is asked of the cluster then."""

    object: str
    rule: str
    jobs: tuple[Mapping[str, Any], ...]
    placed: Mapping[str, Placed]
    local: bool = False
    local_source: str = ""

    def number(self, name: str) -> int | None:
        """An amount, where it is known beforehand."""
        return self.placed[name].number

    def word(self, name: str) -> str | None:
        """A name, where anybody gives one."""
        value = self.placed[name].value
        return None if value is None else str(value)

    @property
    def label(self) -> str:
        """For people: the job's id, or those of a session's members."""
        names = [str(job["id"]) for job in self.jobs]
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def resolve_placement(
    document: Mapping[str, Any], requests: Requests | None, jobs: Sequence[str] | None = None
) -> tuple[ResolvedRequest, ...]:
    """What every job of plan.json (decoded), or those with the given ids, asks for."""
    settled = []
    wanted = None if jobs is None else set(jobs)
    for name, rule, members in _units(document):
        ids = {each for job in members for each in (job["id"], *job.get("clients", ()))}
        if wanted is None or ids & wanted:
            local, source = _stays(rule, members, requests)
            settled.append(
                ResolvedRequest(
                    object=name,
                    rule=rule,
                    jobs=members,
                    placed=resolve_requests(rule, members, requests),
                    local=local,
                    local_source=source,
                )
            )
    return tuple(settled)


def _stays(
    rule: str, jobs: Sequence[Mapping[str, Any]], requests: Requests | None
) -> tuple[bool, str]:
    """Whether jobs stay on the submit host where others go to a queue, and who says so."""
    if requests is None or not requests.profile.queued or rule == "server":
        return False, ""
    forced = (requests.forced.get(rule) or {}).get(LOCAL)
    return is_local(rule, jobs, forced, (requests.usual or {}).get(LOCAL))


def resolve_requests(
    rule: str, jobs: Sequence[Mapping[str, Any]], requests: Requests | None
) -> dict[str, Placed]:
    """What the jobs that one rule does together ask for."""
    found: dict[str, Placed] = {}
    for name in NAMES:
        candidates = list(_candidates(name, rule, jobs, requests, found))
        if not candidates:
            found[name] = _default(name, jobs, requests)
            continue
        (value, source), *others = candidates
        lost = tuple(Rejected(each, who) for each, who in others if each != value)
        found[name] = Placed(value, source, lost)
    return found


def retries_of(jobs: Sequence[Mapping[str, Any]]) -> int:
    """How often the jobs that one rule does together may be submitted again in a run."""
    asked = _largest_request("retries", jobs)
    return RETRIES if asked is None else int(asked[0])


def _units(
    document: Mapping[str, Any],
) -> Iterator[tuple[str, str, tuple[Mapping[str, Any], ...]]]:
    """Jobs as Snakemake sees them: a session is one, and so is a server that others share. Equal
    work is done once."""
    for server in document.get("servers") or ():
        if server["scope"] == "shared":
            yield f"server/{server['key']}", "server", (_server_job(server),)
    by_id = {job["id"]: job for job in document["jobs"]}
    session_of = {
        f"{by_id[member]['kind']}/{by_id[member]['key']}": session
        for session in document.get("sessions") or ()
        for member in session["members"]
    }
    seen = set()
    for job in document["jobs"]:
        name = f"{job['kind']}/{job['key']}"
        session = session_of.get(name)
        unit = name if session is None else f"session/{session['key']}"
        if unit in seen:
            continue
        seen.add(unit)
        if session is None:
            yield unit, str(job["kind"]), (job,)
        else:
            yield unit, "session", tuple(by_id[member] for member in session["members"])


def _server_job(server: Mapping[str, Any]) -> Mapping[str, Any]:
    """A shared server as the job that it is."""
    backend = server["lease"]["backend"]
    return {**server, "stage": server["id"], "kind": "server", "backend": backend}


def _candidates(
    name: str,
    rule: str,
    jobs: Sequence[Mapping[str, Any]],
    requests: Requests | None,
    settled: Mapping[str, Placed],
) -> Iterator[tuple[Amount, str]]:
    """Who says something about a name, strongest first. `settled` has the names before it."""
    if requests is not None:
        settings = requests.profile.settings
        if name == "qos" and settings.get("slurm-qos") is not None:
            yield str(settings["slurm-qos"]), "slurm-qos"
        forced = requests.forced.get(rule) or {}
        for value, key in _amounts_in(name, forced, settled):
            yield value, f"set-resources {rule}: {key}"
        if name == "cpus" and rule in requests.threads:
            yield requests.threads[rule], f"set-threads {rule}"
    asked = _largest_request(name, jobs)
    if asked is not None:
        yield asked
    if requests is not None and requests.usual is not None:
        candidates = list(_amounts_in(name, requests.usual, settled))
        if name == "mem_mb":
            yield from _raised(candidates, jobs)
        for value, key in candidates:
            # No GPU is of no type.
            if name != "gpu_type" or settled["gpus"].value != 0:
                yield value, f"default-resources: {key}"


def _raised(
    candidates: Sequence[tuple[Amount, str]], jobs: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Amount, str]]:
    """What the models of the jobs need, where a default of memory is less; one that goes by the
    cpu, or an expression, stays."""
    needed = memory_needed(jobs)
    if needed is not None and len(candidates) == 1 and candidates[0][1] == "mem_mb":
        usual = candidates[0][0]
        if isinstance(usual, int) and usual < needed:
            yield needed, NEEDED


def _amounts_in(
    name: str, amounts: Mapping[str, Amount], settled: Mapping[str, Placed]
) -> Iterator[tuple[Amount, str]]:
    """What one level of a profile says, the word first that the plugin prefers."""
    if name in ("gpus", "gpu_type"):
        yield from _gpu_amounts(name, amounts, settled)
    elif name == "cpus":
        yield from _cpu_amounts(amounts, settled)
    elif name == "mem_mb":
        yield from _memory_amounts(amounts, settled)
    resource = RESOURCES.get(name)
    if resource is not None and resource in amounts:
        yield amounts[resource], resource


def _gpu_amounts(
    name: str, amounts: Mapping[str, Amount], settled: Mapping[str, Placed]
) -> Iterator[tuple[Amount, str]]:
    """`gres` counts by node."""
    count, kind = gpus_of(amounts.get("gres"))
    if name == "gpus" and count is not None:
        yield count * (settled["nodes"].number or 1), "gres"
    if name == "gpus" and "gpu" in amounts:
        yield amounts["gpu"], "gpu"
    if name == "gpu_type" and kind is not None:
        yield kind, "gres"


def _cpu_amounts(
    amounts: Mapping[str, Amount], settled: Mapping[str, Placed]
) -> Iterator[tuple[Amount, str]]:
    if "cpus_per_task" in amounts:
        yield amounts["cpus_per_task"], "cpus_per_task"
    elif "cpus_per_gpu" in amounts and settled["gpus"].value != 0:
        yield f"{amounts['cpus_per_gpu']} for each GPU", "cpus_per_gpu"


def _memory_amounts(
    amounts: Mapping[str, Amount], settled: Mapping[str, Placed]
) -> Iterator[tuple[Amount, str]]:
    per_cpu, cpus = amounts.get("mem_mb_per_cpu"), settled["cpus"].number
    if isinstance(per_cpu, int) and cpus is not None:
        yield per_cpu * cpus, "mem_mb_per_cpu"
    elif per_cpu is not None:
        yield f"{per_cpu} for each cpu", "mem_mb_per_cpu"
    if "mem_mb" in amounts:
        yield amounts["mem_mb"], "mem_mb"


def _largest_request(name: str, jobs: Sequence[Mapping[str, Any]]) -> tuple[Amount, str] | None:
    """The most that one of the jobs asks for, or the first name."""
    best = largest_request(name, jobs)
    if best is None:
        return None
    line = f":{best['line']}" if best["line"] else ""
    return best["value"], f"{best['file']}{line}"


def _default(name: str, jobs: Sequence[Mapping[str, Any]], requests: Requests | None) -> Placed:
    if name == "cpus":
        cpus = max(int(job["resources"]["cpus"]) for job in jobs)
        busy = max(int((job.get("memory") or {}).get("cores") or 0) for job in jobs)
        return Placed(cpus, BUSY if cpus == busy else OWN_DEFAULT)
    if name == "gpus":
        return Placed(0, NO_GPU)
    if name == "nodes":
        return Placed(1, OWN_DEFAULT)
    if name == "retries":
        # A server that others share is brought back by those who need it.
        return Placed(None if jobs[0]["kind"] == "server" else RETRIES, OWN_DEFAULT)
    if name == "mem_mb" and requests is not None and (requests.profile.queued or requests.usual):
        needed = memory_needed(jobs)
        if needed is None or needed <= _LEAST_DEFAULT:
            return Placed(SNAKEMAKE_MEMORY, "Snakemake's default")
        return Placed(needed, NEEDED)
    return Placed(None, "the cluster's default")
