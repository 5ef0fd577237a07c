"""What the Snakefile asks of a cluster for each job: who says a value, strongest first.

`set-resources` of the profile (Snakemake puts it on top of what stands here), the spec's
`placement:`, `default-resources` of the profile; a default of memory is raised to what the job's
model needs. `agentc.placement` settles the same beforehand
and says who gave what. Compiled directories bring a Snakefile that imports this: names stay.
docs/design/placement.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Job = Mapping[str, Any]
RESOURCES = {
    "partition": "slurm_partition",
    "account": "slurm_account",
    "qos": "qos",
    "constraint": "constraint",
    "nodes": "nodes",
    "gpu_type": "gpu_model",
    "minutes": "runtime",
}
"""What a spec says, in Snakemake's words, where one resource says it all."""
LOCAL = "local"
"""Of a job: it needs no node of its own. In a profile a resource of that name, 0 or 1."""
OWN_DEFAULT = "agentc's default"
_NAMES = {"mem": "mem_mb", **{resource: name for name, resource in RESOURCES.items()}}
_INSTEAD = {"cpus_per_task": "cpus", "cpus_per_gpu": "cpus", "mem_mb_per_cpu": "mem_mb"}
_GPU = ("gpu", "gpu_model", "gres")
_UNSAID = object()


def placement_request(job: Job) -> Mapping[str, Any]:
    """What the spec's `placement:` says of a job, by name."""
    return job.get("asked") or {}


def largest_request(name: str, jobs: Sequence[Job]) -> Mapping[str, Any] | None:
    """What the spec says of jobs that run as one, with its place: the most that a member asks
    for, of names the first."""
    requests: list[Mapping[str, Any]] = [
        placement_request(j)[name] for j in jobs if name in placement_request(j)
    ]
    if not requests:
        return None
    return (
        requests[0]
        if isinstance(requests[0]["value"], str)
        else max(requests, key=lambda a: a["value"])
    )


def memory_needed(jobs: Sequence[Job]) -> int | None:
    """MiB that the models of jobs that run as one need of a node, the most of them; None where
    nothing is known of any."""
    needs = [int(j["memory"]["mem_mb"]) for j in jobs if j.get("memory")]
    return max(needs, default=None)


def is_local(rule: str, jobs: Sequence[Job], forced: Any, usual: Any) -> tuple[bool, str]:
    """Whether jobs that run as one stay on the submit host, as local rules, and who says so:
    `forced` and `usual` are what the profile sets for the rule and for all (None: nothing)."""
    if forced is not None:
        return _is_true(forced), f"set-resources {rule}: {LOCAL}"
    asked = [placement_request(job)[LOCAL] for job in jobs if LOCAL in placement_request(job)]
    if asked:
        line = f":{asked[0]['line']}" if asked[0].get("line") else ""
        rest = [job.get(LOCAL) for job in jobs if LOCAL not in placement_request(job)]
        found = all(each["value"] for each in asked) and all(rest)
        return found, f"{asked[0]['file']}{line}"
    if usual is not None and not _is_true(usual):  # a yes would be for trainings, too
        return False, f"default-resources: {LOCAL}"
    return all(bool(job.get(LOCAL)) for job in jobs), OWN_DEFAULT


def _is_true(value: Any) -> bool:
    return str(value).strip("'\"").lower() not in ("0", "false", "no", "off")


def gpus_of(gres: Any) -> tuple[int | None, str | None]:
    """GPUs on each node and their type, of `gpu:2` or `gpu:a100:2`."""
    parts = str(gres or "").split(":")
    if parts[0] != "gpu":
        return None, None
    count = int(parts[-1]) if len(parts) > 1 and parts[-1].isdigit() else 1
    named = parts[1] if len(parts) == 3 or (len(parts) == 2 and not parts[1].isdigit()) else None
    return count, named


class RuleResources:
    """Resources of rules, given what Snakemake read of its profile (`workflow.resource_settings`:
    `overwrite_resources`, `overwrite_threads`, `default_resources`)."""

    def __init__(self, settings: Any) -> None:
        self._forced = settings.overwrite_resources
        self._threads = settings.overwrite_threads
        self._usual = settings.default_resources or {}

    def of_rule(self, rule: str, work: Mapping[str, Sequence[Job]]) -> dict[str, Any]:
        """A function for each resource that some job of the rule asks for; only of these, so that
        a profile's defaults hold otherwise. `work` are the jobs behind each key."""
        names = {name for jobs in work.values() for job in jobs for name in placement_request(job)}
        if any(memory_needed(jobs) for jobs in work.values()):
            names.add("mem_mb")
        forced = self._forced_of(rule)
        spoken = [resource for resource, name in _NAMES.items() if name in names]
        spoken += [resource for resource, name in _INSTEAD.items() if name in {*names, *forced}]
        if "gpus" in names or "gpu" in forced or _counts_gpus(forced.get("gres")):
            spoken += _GPU
        return {resource: self._resource(rule, work, resource) for resource in spoken}

    def is_local(self, rule: str, jobs: Sequence[Job]) -> bool:
        """Whether jobs that run as one stay on the submit host where others go to a queue."""
        usual = self._usual.get(LOCAL) if LOCAL in self._usual else None
        usual = getattr(usual, "raw", usual)
        return is_local(rule, jobs, self._forced_of(rule).get(LOCAL), usual)[0]

    def of_servers(self, servers: Mapping[str, Job]) -> dict[str, Any]:
        """Those of shared servers; `server` is a local rule, whose threads are this machine's."""

        def cpus(wildcards: Any, **given: Any) -> Any:
            server = servers[wildcards.key]
            usual = self._usual_of("cpus_per_task", wildcards, given)
            return (None if "cpus" in placement_request(server) else usual) or server["resources"][
                "cpus"
            ]

        work = {key: [server] for key, server in servers.items()}
        return {**self.of_rule("server", work), "cpus_per_task": cpus}

    def _resource(self, rule: str, work: Mapping[str, Sequence[Job]], name: str) -> Any:
        def value(wildcards: Any, **given: Any) -> Any:
            def usual() -> Any:
                return self._usual_of(name, wildcards, given)

            jobs = work[wildcards.key]
            found = _spec_value(name, jobs, self._forced_of(rule), usual)
            if found is not _UNSAID:
                return found
            return self._raised(rule, usual(), jobs) if _NAMES.get(name) == "mem_mb" else usual()

        return value

    def _raised(self, rule: str, usual: Any, jobs: Sequence[Job]) -> Any:
        """A default of memory, or what the models of the jobs need where that is more. Where there
        is no default, or memory goes by the cpu, nothing is asked for."""
        needed = memory_needed(jobs)
        by_cpu = "mem_mb_per_cpu" in self._usual or "mem_mb_per_cpu" in self._forced_of(rule)
        if needed is None or by_cpu or not isinstance(usual, int):
            return usual
        return max(usual, needed)

    def _usual_of(self, name: str, wildcards: Any, given: Mapping[str, Any]) -> Any:
        """The profile's default of a resource."""
        name = "mem_mb" if name == "mem" else name
        if name not in self._usual:
            return None
        default = self._usual[name]
        return (
            default.evaluate(wildcards, **given).value if hasattr(default, "evaluate") else default
        )

    def _forced_of(self, rule: str) -> dict[str, Any]:
        """What the profile sets for a rule, as it is written there."""
        resources = self._forced.get(rule, {})
        forced = {name: getattr(value, "raw", value) for name, value in resources.items()}
        return {**forced, **({"cpus": self._threads[rule]} if rule in self._threads else {})}


def _counts_gpus(gres: Any) -> bool:
    return gpus_of(gres)[0] is not None


def _spec_value(
    resource: str, jobs: Sequence[Job], forced: Mapping[str, Any], usual: Callable[[], Any]
) -> Any:
    """What the spec says: a value, None for nothing at all, or _UNSAID."""

    def ask(name: str) -> Any:
        found = largest_request(name, jobs)
        return None if found is None else found["value"]

    if resource in _GPU:
        return _spec_gpus(resource, ask, forced, usual)
    if resource in _INSTEAD:
        name = _INSTEAD[resource]
        return _UNSAID if ask(name) is None and name not in forced else None
    asked = ask(_NAMES[resource])
    return _UNSAID if asked is None else asked


def _spec_gpus(
    resource: str, ask: Callable[[str], Any], forced: Mapping[str, Any], usual: Callable[[], Any]
) -> Any:
    """The same of `gpu`, `gpu_model` and `gres`, of which SLURM takes either the last or others."""
    gpus, model = ask("gpus"), ask("gpu_type")
    nodes = forced.get("nodes", ask("nodes"))
    nodes = nodes if isinstance(nodes, int) else 1
    counted = "gpu" in forced
    if _counts_gpus(forced.get("gres")):
        return None
    if gpus is None and not counted:
        return model if resource == "gpu_model" and model else _UNSAID
    if resource == "gres":
        if gpus and nodes > 1 and not counted:  # the one that counts by node
            return _gres(gpus // nodes, model)
        return None if _counts_gpus(usual()) else _UNSAID
    if counted:
        return model or _UNSAID if resource == "gpu_model" else None
    if resource == "gpu":
        return gpus if nodes == 1 else None
    return model or _UNSAID if gpus and nodes == 1 else None


def _gres(count: int, model: str | None) -> str:
    """SLURM's words for GPUs of a node."""
    return ":".join(["gpu", *([model] if model else []), str(count)])
