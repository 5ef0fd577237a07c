"""Tables of a report about jobs: warnings, settings, software, machines, and what jobs and their
servers cost. No markup here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agentc.runtime.health import findings, stage_facts
from agentc_backends.results.report.collect import Collection, ExperimentJob, anchor, written_logs

_SHOWN_JSON = 20_000
_HARDWARE = {"cores": "CPU cores", "cpu": "CPU", "cpus": "CPUs of each job", "gpus": "GPUs",
             "gpus_given": "GPUs of each job", "memory_mb": "memory (MB)"}  # fmt: skip
_CELL = re.compile(r"@[^:\s]*")
_NUMBER = re.compile(r"\d[\d.e+-]*")


def unchanged_models(collection: Collection) -> list[dict[str, Any]]:
    """The stages that had nothing to train on and handed their model on, with the reason."""
    found = []
    for node in collection.of_type("Checkpoint"):
        facts = node.manifest.get("facts") or {}
        if facts.get("kept_model") is True:
            because = str(facts.get("kept_because", ""))
            found.append({"name": node.name, "anchor": anchor(node), "because": because})
    return found


def job_warnings(collection: Collection) -> list[dict[str, Any]]:
    """What programs of jobs warned of."""
    return [
        {"name": node.name, "anchor": anchor(node), "text": str(text)}
        for node in collection.nodes
        for text in (node.manifest.get("facts") or {}).get("warnings") or ()
    ]


def health(collection: Collection) -> list[dict[str, Any]]:
    """What says that stages learned nothing, the gravest first. The same finding in several cells
    of a sweep is one entry: `also` are (cell, anchor) of the others."""
    anchors = {node.name: anchor(node) for node in collection.nodes}
    stages = [stage_facts(node.name, node.manifest) for node in collection.nodes]
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for one in findings(stages):
        base = _CELL.sub("@", one.stage)
        place = (base, _NUMBER.sub("#", _CELL.sub("@", one.what)), one.where)
        first = found.get(place)
        if first is None:
            found[place] = {
                "name": one.stage, "anchor": anchors[one.stage], "what": one.what,
                "where": one.where, "also": [],
            }  # fmt: skip
        else:
            cell = one.stage.partition("@")[2].partition(":")[0]
            first["also"].append((cell or one.stage, anchors[one.stage]))
    return list(found.values())


def jobs(collection: Collection) -> list[dict[str, Any]]:
    """What each job was given and what it cost."""
    longest = max((_seconds(node) for node in collection.nodes), default=0.0) or 1.0
    shared = members(collection)
    rows = []
    for node in collection.nodes:
        manifest = node.manifest
        software = manifest.get("software") or {}
        rows.append(
            {
                "name": node.name,
                "anchor": anchor(node),
                "kind": node.kind,
                "type": node.type,
                "backend": f"{manifest.get('backend', '')} v{manifest.get('version', '')}",
                "key": manifest.get("key", ""),
                "wall_s": _seconds(node),
                "share": _seconds(node) / longest,
                "cpu_s": manifest.get("cpu_s"),
                "max_rss_mb": manifest.get("max_rss_mb"),
                **tokens(manifest),
                "gpu_hours": None if node.object in shared else gpu_hours(manifest),
                "gpu_memory_mb": gpu_memory([manifest.get("environment") or {}]),
                "attempts": manifest.get("attempts"),
                "started": manifest.get("started"),
                "logs": _log_links(node.logs),
                "software": software.get("name", ""),
                "lock": str(software.get("lock", "")),
                "inputs": [
                    (
                        role,
                        collection.by_object[name].name if name in collection.by_object else name,
                    )
                    for role, name in node.parents
                ],
                "facts": _flat(manifest.get("facts") or {}),
                "settings": _flat((manifest.get("identity") or {}).get("settings") or {}),
                "config": _json(manifest.get("config") or {}),
                "leases": [_lease(lease) for lease in manifest.get("leases") or []],
                "files": sorted((manifest.get("files") or {}).items()),
            }
        )
    return rows


def software(collection: Collection) -> list[dict[str, Any]]:
    """Each software stack once: `imported` are versions that programs and servers said
    they imported (empty when none said), `versions` everything that is installed in it."""
    found: dict[str, dict[str, Any]] = {}
    for node in collection.nodes:
        software = node.manifest.get("software") or {}
        parts = [software]
        for lease in node.manifest.get("leases") or []:
            parts.append({**lease, "name": lease.get("software")})
        for part in parts:
            lock = str(part.get("lock", ""))
            if not lock:
                continue
            entry = found.setdefault(
                lock,
                {"name": part.get("name", ""), "lock": lock, "python": part.get("python")}
                | {"imported": {}, "versions": {}},
            )
            for which in ("imported", "versions"):
                entry[which] |= part.get(which) or {}
    for entry in found.values():
        for which in ("imported", "versions"):
            entry[which] = sorted(entry[which].items(), key=lambda item: item[0].lower())
    return list(found.values())


def machines(collection: Collection) -> list[dict[str, Any]]:
    """Each machine once, with how many jobs ran there."""
    found: dict[str, dict[str, Any]] = {}
    for node in collection.nodes:
        hardware = node.manifest.get("hardware")
        if hardware:
            text = json.dumps(hardware, sort_keys=True)
            facts = [(_HARDWARE.get(name, name), value) for name, value in _flat(hardware)]
            entry = found.setdefault(text, {"facts": facts, "jobs": 0})
            entry["jobs"] += 1
    return list(found.values())


def total_seconds(collection: Collection) -> float:
    return sum(_seconds(node) for node in collection.nodes)


def _seconds(node: ExperimentJob) -> float:
    return float(node.manifest.get("wall_s") or 0.0)


def _lease(lease: Mapping[str, Any]) -> str:
    identity = _flat(lease.get("identity") or {})
    settings = ", ".join(f"{name} {value}" for name, value in identity)
    ready = lease.get("ready_s")
    text = f"{lease.get('role')}: {lease.get('backend')} v{lease.get('version')}"
    if settings:
        text += f" ({settings})"
    return text + (f", ready after {ready:.1f} s" if isinstance(ready, (int, float)) else "")


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as (dotted name, text) pairs."""
    found: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}{name}.")
        else:
            found.append((prefix + name, _text(value)))
    return found


def _text(value: Any) -> str:
    """A value as YAML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, str) and (not value.strip() or "\n" in value):
        return json.dumps(value, ensure_ascii=False)
    return "null" if value is None else str(value)


def _json(value: Any) -> str:
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    if len(text) > _SHOWN_JSON:
        return text[:_SHOWN_JSON] + f"\n... {len(text) - _SHOWN_JSON} more characters"
    return text


# Costs. A server is a row of its own, since it works while its clients wait for it.

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


def gpu_memory(parts: Iterable[Mapping[str, Any]]) -> float | None:
    """The largest peak, in MiB, of what tensors took on one GPU; None where no process of these
    used one."""
    found = [
        part["gpu"].get("max_memory_mb") for part in parts if isinstance(part.get("gpu"), dict)
    ]
    return max((float(each) for each in found if each is not None), default=None)


def _log_links(paths: Iterable[Path]) -> list[tuple[str, str]]:
    """(name, address) of logs; addresses are relative to `data/` of the report, three folders
    below the objects of the store."""
    return [(path.name, "../../../" + quote("/".join(path.parts[-4:]))) for path in paths]


def members(collection: Collection) -> frozenset[str]:
    """Objects whose servers and GPUs were those of a session."""
    return frozenset(name for session in collection.sessions for name in session.members)


def servers(collection: Collection) -> list[dict[str, Any]]:
    """A row for each server that the jobs or their sessions started."""
    inside = members(collection)
    rows: list[dict[str, Any]] = []
    for session in collection.sessions:
        names = [node.name for node in collection.nodes if node.object in session.members]
        logs = _log_links(written_logs(session.folder))
        rows += _rows(session.manifest, names, gpu_hours(session.manifest), logs)
    for node in collection.nodes:
        if node.object not in inside:
            # The job's own row has the GPUs.
            rows += _rows(node.manifest, [node.name], None, [])
    return [*rows, *_shared(collection)]


def totals(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """Sums of jobs and servers; None where nothing is known."""
    found: dict[str, float | None] = {"max_rss_mb": None, "gpu_memory_mb": None}
    for name in ("cpu_s", "tokens_in", "tokens_out", "gpu_hours"):
        known = [row[name] for row in rows if row[name] is not None]
        found[name] = sum(known) if known else None
    return found


def _rows(
    manifest: Mapping[str, Any],
    clients: list[str],
    gpus: float | None,
    logs: list[tuple[str, str]],
) -> Iterator[dict[str, Any]]:
    for lease in manifest.get("leases") or ():
        parts = [part for part in lease.get("copies") or [lease] if part.get("cpu_s") is not None]
        if not parts:
            continue
        yield {
            "name": f"{lease.get('name') or lease.get('role')} server of {', '.join(clients)}",
            "title": f"{lease.get('name') or lease.get('role')} server",
            "clients": clients,
            "logs": logs,
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
            "gpu_memory_mb": gpu_memory([lease, *parts]),
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
        names = list(dict.fromkeys(node.name for node, _ in clients))
        title = f"{lease.get('name') or lease.get('role')} server"
        yield {
            "name": f"{title} of {', '.join(names)}, shared",
            "title": f"{title}, shared",
            "clients": names,
            "logs": [],
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
            "gpu_memory_mb": gpu_memory(lease for _, lease in clients),
        }
