"""What the header says of a report: at which scale results were made, when, where, by which agentc.

All of it stands in the manifests of the jobs. What belongs to one run alone (its params, the
commit) is added by who shows the page, `agentc.run.report_header`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from agentc_backends.results.report.collect import Collection


def origin(collection: Collection, experiment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, text) of each fact that is known: scale, when, agentc's versions, hosts."""
    manifests = [node.manifest for node in collection.nodes]
    versions = {str(m["agentc"]) for m in manifests if m.get("agentc")}
    hosts = {str((m.get("hardware") or {}).get("host") or "") for m in manifests}
    facts = [
        ("scale", str(experiment.get("scale") or "as the spec is written")),
        ("made", _when(manifests)),
        ("agentc", ", ".join(sorted(versions))),
        ("host", ", ".join(sorted(hosts - {""}))),
    ]
    return [(name, text) for name, text in facts if text]


def _when(manifests: list[Mapping[str, Any]]) -> str:
    """From the start of the first job to the end of the last one."""
    began = [float(m["started"]) for m in manifests if m.get("started") is not None]
    if not began:
        return ""
    ends = [
        float(m["started"]) + float(m.get("wall_s") or 0.0)
        for m in manifests
        if m.get("started") is not None
    ]
    first, last = (datetime.fromtimestamp(t, tz=timezone.utc) for t in (min(began), max(ends)))
    until = last.strftime("%H:%M" if first.date() == last.date() else "%Y-%m-%d %H:%M")
    return f"{first:%Y-%m-%d %H:%M} to {until} UTC"
