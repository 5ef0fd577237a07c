"""Tables of a report: evaluations, comparisons, models that were not trained, durations, settings,
software. No markup here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from agentc.runtime.health import findings, stage_facts
from agentc_backends.results.report import costs
from agentc_backends.results.report.collect import Collection, ExperimentJob

_SHOWN_JSON = 20_000


def evaluations(collection: Collection) -> list[dict[str, Any]]:
    """One table for each (environment, split), with one row for each evaluation on it."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for node in collection.of_type("Metrics"):
        metrics = node.document("metrics.json")
        asked = metrics.get("asked", {})
        scores = [(node.name, metrics["reward"], metrics["success"])]
        for k in metrics.get("best_of", ()):
            best = f"{node.name}, best of {k}"
            scores.append((best, asked[f"best_of({k})"], asked[f"pass_at({k})"]))
        tables.setdefault(metrics["name"], []).extend(
            {
                "name": name,
                "anchor": anchor(node),
                "n": metrics["n"],
                "n_tasks": metrics.get("n_tasks", len(metrics["tasks"])),
                "n_error": metrics["n_error"],
                "reward": reward,
                "success": success,
                # Scores that a script gave have neither.
                "turns": metrics.get("turns", {}).get("mean"),
                "invalid": metrics.get("invalid_share"),
                "loops": asked.get("loops"),
                "repeats": metrics.get("repeats"),
            }
            for name, reward, success in scores
        )
    return [
        {
            "on": on,
            "rows": rows,
            "scale": scale_of(row["reward"] for row in rows),
            "loops": any(row["loops"] for row in rows),
        }
        for on, rows in tables.items()
    ]


def comparisons(collection: Collection) -> list[dict[str, Any]]:
    """The comparison.json of each comparison, with the scales of its marks."""
    found = []
    for node in collection.of_type("Comparison"):
        document = node.document("comparison.json")
        rows = document["rows"]
        # Of revisions other scores stand in place of these.
        scores = document.get("scores", ["reward", "success"])
        reach = max(
            (abs(d[k]) for row in rows if (d := row["difference"]) for k in ("low", "high")),
            default=1.0,
        )
        found.append(
            {
                "name": node.name,
                "anchor": anchor(node),
                **document,
                "scores": scores,
                "graded": "scores" not in document,
                "scale": scale_of(row[scores[0]] for row in rows),
                "reach": reach or 1.0,
                "loops": any("loops" in row for row in rows),
                "wins": any("wins" in row for row in rows),
            }
        )
    return found


def kept_models(collection: Collection) -> list[dict[str, Any]]:
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
    """What says that stages learned nothing, the gravest first."""
    anchors = {node.name: anchor(node) for node in collection.nodes}
    stages = [stage_facts(node.name, node.manifest) for node in collection.nodes]
    return [
        {"name": one.stage, "anchor": anchors[one.stage], "what": one.what, "where": one.where}
        for one in findings(stages)
    ]


def mean_score(metrics: Mapping[str, Any], score: str) -> float | None:
    """Over the tasks that have one."""
    found = [task[score] for task in metrics["tasks"].values() if task.get(score) is not None]
    return fmean(found) if found else None


def scale_of(intervals: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """From 0 or below to 1 or above: enough for every interval."""
    ends = [i[k] for i in intervals for k in ("low", "high") if i[k] is not None]
    return min([0.0, *ends]), max([1.0, *ends])


def jobs(collection: Collection) -> list[dict[str, Any]]:
    """What each job was given and what it cost."""
    longest = max((_seconds(node) for node in collection.nodes), default=0.0) or 1.0
    shared = costs.members(collection)
    rows = []
    for node in collection.nodes:
        manifest = node.manifest
        environment = manifest.get("environment") or {}
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
                **costs.tokens(manifest),
                "gpu_hours": None if node.object in shared else costs.gpu_hours(manifest),
                "attempts": manifest.get("attempts"),
                "started": manifest.get("started"),
                "environment": environment.get("name", ""),
                "lock": str(environment.get("lock", "")),
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
    """Each software environment once: `imported` are versions that programs and servers said
    they imported (empty when none said), `versions` everything that is installed in it."""
    found: dict[str, dict[str, Any]] = {}
    for node in collection.nodes:
        environment = node.manifest.get("environment") or {}
        parts = [environment]
        for lease in node.manifest.get("leases") or []:
            parts.append({**lease, "name": lease.get("environment")})
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
            entry = found.setdefault(text, {"facts": _flat(hardware), "jobs": 0})
            entry["jobs"] += 1
    return list(found.values())


def anchor(node: ExperimentJob) -> str:
    """The id of a job's place in the page."""
    return "job-" + node.object.replace("/", "-")


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
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value)) or "none"
    return "none" if value is None else str(value)


def _json(value: Any) -> str:
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    if len(text) > _SHOWN_JSON:
        return text[:_SHOWN_JSON] + f"\n... {len(text) - _SHOWN_JSON} more characters"
    return text
