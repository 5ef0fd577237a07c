"""What jobs and their servers cost: time, memory, tokens, GPU-hours. A server is a row of its own,
since it works while its clients wait for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentc_backends.results.report.collect import Collection, ExperimentJob

_TOKENS = {
    "tokens_in": ("prompt_tokens", "judge_prompt_tokens"),
    "tokens_out": ("completion_tokens", "judge_completion_tokens"),
}


def tokens(manifest: Mapping[str, Any]) -> dict[str, int | None]:
    """Tokens that a job's model servers read and wrote for it, where its facts say so."""
    facts = manifest.get("facts") or {}
    found: dict[str, int | None] = {}
    for name, keys in _TOKENS.items():
        counts = [facts[key] for key in keys if isinstance(facts.get(key), int)]
        found[name] = sum(counts) if counts else None
    return found


def gpu_hours(manifest: Mapping[str, Any]) -> float | None:
    """Of the GPUs that a job or a session was given; None without any."""
    given = (manifest.get("hardware") or {}).get("gpus_given") or ()
    return len(given) * float(manifest.get("wall_s") or 0.0) / 3600 if given else None


def members(collection: Collection) -> frozenset[str]:
    """Objects whose servers and GPUs were those of a session."""
    return frozenset(
        str(name) for each in collection.sessions for name in (each.get("members") or {}).values()
    )


def servers(collection: Collection) -> list[dict[str, Any]]:
    """A row for each server that the jobs or their sessions started."""
    inside = members(collection)
    rows: list[dict[str, Any]] = []
    for session in collection.sessions:
        names = [node.name for node in collection.nodes if node.object in _values(session)]
        rows += _rows(session, names, gpu_hours(session))
    for node in collection.nodes:
        if node.object not in inside:
            # The job's own row has the GPUs.
            rows += _rows(node.manifest, [node.name], None)
    return [*rows, *_shared(collection)]


def totals(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """Sums of jobs and servers; None where nothing is known."""
    found: dict[str, float | None] = {"max_rss_mb": None}
    for name in ("cpu_s", "tokens_in", "tokens_out", "gpu_hours"):
        known = [row[name] for row in rows if row[name] is not None]
        found[name] = sum(known) if known else None
    return found


def _rows(
    manifest: Mapping[str, Any], clients: list[str], gpus: float | None
) -> Iterator[dict[str, Any]]:
    for lease in manifest.get("leases") or ():
        parts = [part for part in lease.get("copies") or [lease] if part.get("cpu_s") is not None]
        if not parts:
            continue
        yield {
            "name": f"{lease.get('name') or lease.get('role')} server of {', '.join(clients)}",
            "kind": "server",
            "backend": str(lease.get("backend", "")),
            "wall_s": float(manifest.get("wall_s") or 0.0),
            "cpu_s": sum(float(part["cpu_s"]) for part in parts),
            "max_rss_mb": max(float(part.get("max_rss_mb") or 0.0) for part in parts),
            "attempts": None,
            "started": manifest.get("started"),
            "tokens_in": None,
            "tokens_out": None,
            "gpu_hours": gpus,
        }
        gpus = None  # of a session once, whichever of its servers had them


def _shared(collection: Collection) -> Iterator[dict[str, Any]]:
    """A row for each server of `scope: shared` or `node`, from the start of its first client to the
    end of its last one. It may outlive them all: its CPU time is unknown."""
    found: dict[tuple[str, str], list[tuple[ExperimentJob, Mapping[str, Any]]]] = {}
    for node in collection.nodes:
        for lease in node.manifest.get("leases") or ():
            if lease.get("scope") is not None:
                name = lease.get("name") or lease.get("role")
                key = (str(lease.get("server") or name), str(lease.get("backend", "")))
                found.setdefault(key, []).append((node, lease))
    for (_, backend), clients in found.items():
        lease = clients[0][1]
        starts = [float(node.manifest.get("started") or 0.0) for node, _ in clients]
        ends = [
            start + float(node.manifest.get("wall_s") or 0.0)
            for start, (node, _) in zip(starts, clients, strict=True)
        ]
        wall = max(ends) - min(starts)
        given = (lease.get("hardware") or {}).get("gpus_given") or ()
        names = ", ".join(dict.fromkeys(node.name for node, _ in clients))
        yield {
            "name": f"{lease.get('name') or lease.get('role')} server of {names}, shared",
            "kind": "server",
            "backend": backend,
            "wall_s": wall,
            "cpu_s": None,
            "max_rss_mb": None,
            "attempts": None,
            "started": min(starts),
            "tokens_in": None,
            "tokens_out": None,
            "gpu_hours": len(given) * wall / 3600 if given else None,
        }


def _values(session: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(map(str, (session.get("members") or {}).values()))
