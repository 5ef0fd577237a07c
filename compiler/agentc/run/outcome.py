"""The outcome of a run for people: why jobs failed, and the tables and the report at the end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentc.plan.work import Document, object_of
from agentc.run.claims import show_chance
from agentc.run.observe import Seen
from agentc.runtime.layout import StoreLayout
from agentc.runtime.lease import last_lines
from agentc.runtime.program import read_json
from agentc.runtime.trouble import full_disk_hint

_FULL = "(ENOSPC; "
_FAILED = re.compile(r"agentc: job (?P<job>\S+) failed: (?P<why>.*)")
_SWEEP = "sweep.json"
_EACH = "The report has the tables of each cell of the sweep."


def describe_failures(
    layout: StoreLayout,
    jobs: Iterable[Mapping[str, Any]],
    seen: Sequence[Seen],
    driver_log: Path,
    servers: Sequence[str] = (),
) -> str:
    """Why shared servers failed, and each failed job with its last log lines and the path of its
    log; when none is known to have failed, what the driver's log says of any, or its last lines.
    A full disk comes first: all else follows from it."""
    # The last word about a job counts: another run may have taken one over that failed here.
    by_id = {one.id: one for one in seen}
    parts: list[str] = [*servers]
    told: set[str] = set()
    for job in jobs:
        found = by_id.get(job["id"])
        if found is None or found.state not in ("failed", "killed"):
            continue
        log = layout.staging(object_of(job)) / "logs" / "log.txt"
        text = f"{found.id} failed: {found.message or found.state}"
        tail = last_lines(log, 20)
        if found.message in told:
            text = f"{found.id} failed for the same reason"
        elif tail:
            text += "\n" + "\n".join(f"  | {line}" for line in tail.splitlines())
        told.add(found.message)
        text += f"\n  log: {log}" if log.exists() else ""
        parts.append(text)
    if not parts:
        parts += _told_by(driver_log, layout, jobs)
    if not parts:
        tail = "\n".join(f"  | {line}" for line in last_lines(driver_log, 25).splitlines())
        parts.append(f"Snakemake stopped without finishing:\n{tail}")
    # On a full disk a job cannot write down why it failed.
    full = full_disk_hint("", layout.root)
    if full and not any(_FULL in text for text in parts):
        parts.append(full)
    parts.sort(key=lambda text: _FULL not in text)
    parts.append(f"Snakemake's log: {driver_log}")
    return "\n\n".join(parts)


def _told_by(driver_log: Path, layout: StoreLayout, jobs: Iterable[Mapping[str, Any]]) -> list[str]:
    """What wrappers of this run said of jobs that another run has taken over since."""
    logs = {str(job["id"]): layout.staging(object_of(job)) / "logs" / "log.txt" for job in jobs}
    found: dict[str, str] = {}
    for line in last_lines(driver_log, 500).splitlines():
        told = _FAILED.match(line)
        if told is not None and told["job"] in logs:
            found[told["job"]] = told["why"]
    return [
        f"{job} failed: {why} (another run tries it again)\n  log: {logs[job]}"
        for job, why in found.items()
    ]


def tables(document: Document, layout: StoreLayout) -> str:
    """The tables of a sweep, else the comparisons of the plan that exist, else its metrics."""
    comparisons, metrics, sweeps = [], [], []
    for job in document["jobs"]:
        name = object_of(job)
        if job["produces"] == "Report" and (layout.data(name) / _SWEEP).exists():
            sweeps += [_sweep(table) for table in read_json(layout.data(name) / _SWEEP)["tables"]]
        if job["produces"] == "Comparison" and layout.is_published(name):
            value = read_json(layout.data(name) / "comparison.json")
            comparisons.append(_comparison(str(job["stage"]), value))
        elif job["produces"] == "Metrics" and layout.is_published(name):
            metrics.append((str(job["stage"]), read_json(layout.data(name) / "metrics.json")))
    if sweeps:
        return "\n\n".join([*sweeps, _EACH]) if comparisons else "\n\n".join(sweeps)
    if comparisons:
        return "\n\n".join(comparisons)
    return _metrics(metrics) if metrics else ""


def report_path(document: Document, layout: StoreLayout) -> Path | None:
    """The page of the plan's report, when it exists."""
    for job in reversed(document["jobs"]):
        if job["produces"] == "Report":
            page = layout.data(object_of(job)) / "index.html"
            if page.exists():
                return page
    return None


def _comparison(title: str, value: Mapping[str, Any]) -> str:
    found = value.get("rows") or []
    several = sum(bool(row.get("difference")) for row in found) > 1
    rows = [["", "tasks", "reward", "success", *_difference_heads(several)]]
    for row in found:
        cells = [str(row.get("name")), _tried(row)]
        cells += [_interval(row.get("reward")), _interval(row.get("success"))]
        rows.append([*cells, *_difference_cells(row.get("difference"), several)])
    head = f"{title}: means with {_confidence(value)}; differences are paired, to "
    lines = [head + str(value.get("baseline")), _aligned(rows)]
    lines += [f"  note: {note}" for note in [*(value.get("notes") or []), *_cautions(found)]]
    return "\n".join(lines)


def _sweep(table: Mapping[str, Any]) -> str:
    """Evaluations pooled over seeds, as the report has them."""
    found = table.get("rows") or []
    several = sum(bool(row.get("difference")) for row in found) > 1
    axes = [str(axis) for axis in table.get("others") or []]
    rows = [["", *axes, "tasks", "reward", *_difference_heads(several)]]
    for row in found:
        reward = row.get("reward") or {}
        cells = [str(row["stage"]), *map(str, row["cell"]), f"{reward.get('n', 0)} x {row['runs']}"]
        difference = _difference_cells(row.get("difference"), several)
        rows.append([*cells, _interval(reward), *difference])
    over = ", ".join(map(str, table.get("seeds") or []))
    head = f"{table['on']} over the sweep" + (
        f", pooled over {over} (tasks x runs)" if over else ""
    )
    head += f": means with {_confidence(table)}"
    if table.get("baseline"):
        head += f"; differences are paired, to {table['baseline']}"
    lines = [head, _aligned(rows)]
    lines += [f"  note: {note}" for note in _cautions(found)]
    return "\n".join(lines)


def _difference_heads(several: bool) -> list[str]:
    return ["difference", "p", *(["p (Holm)"] if several else []), "better, worse, equal"]


def _difference_cells(value: Mapping[str, Any] | None, several: bool) -> list[str]:
    """What `_difference_heads` names."""
    if not value:
        return ["-", "-", *(["-"] if several else []), "-"]
    names = ["p_value", *(["p_holm"] if several else [])]
    chances = [show_chance(p) if isinstance(p := value.get(name), float) else "-" for name in names]
    moved = ", ".join(str(value.get(word, "-")) for word in ("better", "worse", "equal"))
    return [_interval(value, signed=True), *chances, moved]


def _cautions(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the numbers cannot say by themselves."""
    few = [
        str(row.get("name") or row.get("stage"))
        for row in rows
        if (row.get("difference") or {}).get("few")
    ]
    if not few:
        return []
    return [
        f"few tasks moved ({', '.join(few)}): p counts out every sign they could have had, and the "
        "interval rests on the range of rewards more than on what was seen"
    ]


def _tried(row: Mapping[str, Any]) -> str:
    """Tasks, and how often each was tried; episodes where that is no whole number."""
    tasks, episodes = row.get("n_tasks"), row.get("n")
    if not isinstance(tasks, int) or not isinstance(episodes, int) or not tasks:
        return str(episodes)
    if episodes % tasks == 0:
        return f"{tasks} x {episodes // tasks}"
    return f"{tasks} ({episodes} episodes)"


def _confidence(value: Mapping[str, Any]) -> str:
    confidence = value.get("confidence")
    return f"{100 * confidence:.4g}% intervals" if isinstance(confidence, float) else "intervals"


def _metrics(found: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    rows = [["", "tasks", "reward", "success"]]
    for stage, value in found:
        scores = [_interval(value.get("reward")), _interval(value.get("success"))]
        rows.append([stage, _tried(value), *scores])
    return _aligned(rows)


def _interval(value: Any, signed: bool = False) -> str:
    if not isinstance(value, Mapping) or not isinstance(value.get("mean"), (int, float)):
        return "-"
    sign = "+" if signed else ""
    text = f"{value['mean']:{sign}.3f}"
    if isinstance(value.get("low"), (int, float)) and isinstance(value.get("high"), (int, float)):
        text += f" [{value['low']:{sign}.3f}, {value['high']:{sign}.3f}]"
    return text


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)
