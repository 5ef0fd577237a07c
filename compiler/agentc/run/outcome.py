"""The outcome of a run for people: why jobs failed, and the tables and the report at the end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentc.plan.stage_names import of_all_cells
from agentc.plan.work import Document, object_of
from agentc.program.artifact_files import COMPARISON_FILE, METRICS_FILE, REPORT_PAGE
from agentc.program.job import read_json
from agentc.run.claims import show_chance
from agentc.run.observe import JobSnapshot
from agentc.run.text_view import FULL_DISK, details, sentence
from agentc.runtime.health import (
    HealthFinding,
    finding_lines,
    findings,
    stage_facts,
    without_numbers,
)
from agentc.runtime.servers.server_log import last_lines
from agentc.runtime.smoke import SMOKE, smoke_headline
from agentc.runtime.store.file_system import full_disk_hint
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.staging import attempt_begins
from agentc.text import counted, fitted, wrapped

_FAILED = re.compile(r"agentc: job (?P<job>\S+) failed: (?P<why>.*)")
_ERROR = re.compile(r"\s*(?:[\w.]+: )?[\w.]*(?:Error|Exception|Interrupt|Exit|error|Killed)\b")
_VARIES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]|\d\d:\d\d:\d\d(?:[.,]\d+)?|0x[0-9a-f]+|\bpid \d+|[0-9a-f]{16,}"
)
_NOT_US = "agentc did not stop it: its queue did, an administrator, or a user who may signal it"
_LAST_LINES = 3
_SWEEP = "sweep.json"
_FEW_RUNS = 2
_EACH = "The report has the tables of each cell of the sweep."


def describe_failures(
    layout: StoreLayout,
    jobs: Iterable[Mapping[str, Any]],
    seen: Sequence[JobSnapshot],
    driver_log: Path,
    servers: Sequence[str] = (),
) -> str:
    """Why shared servers failed, and each failed job with its last log lines and the path of its
    log; when none is known to have failed, what the driver's log says of any, or its last lines.
    A full disk comes first: all else follows from it."""
    parts = [*servers, *_failed_jobs(layout, jobs, seen)]
    if not parts:
        parts += _messages_in(driver_log, layout, jobs)
    if not parts:
        tail = "".join(f"\n  | {line}" for line in last_lines(driver_log, 25).splitlines())
        parts.append(f"Snakemake stopped without finishing{':' + tail if tail else ''}")
    # On a full disk a job cannot write down why it failed.
    full = full_disk_hint("", layout.root)
    if full and not any(FULL_DISK in text for text in parts):
        parts.append(full)
    parts.sort(key=lambda text: FULL_DISK not in text)
    parts.append(f"Snakemake's log: {driver_log}")
    return "\n\n".join(parts)


def _failed_jobs(
    layout: StoreLayout, jobs: Iterable[Mapping[str, Any]], seen: Sequence[JobSnapshot]
) -> Iterator[str]:
    """A text for each job that failed or was stopped; of those that failed for the same reason the
    first has the lines of its log."""
    # The last word about a job counts: another run may have taken one over that failed here.
    by_id = {snapshot.id: snapshot for snapshot in seen}
    first: dict[tuple[str, ...], str] = {}
    for job in jobs:
        snapshot = by_id.get(job["id"])
        if snapshot is None or snapshot.state not in ("failed", "killed"):
            continue
        log = layout.staging(object_of(job)) / "logs" / "log.txt"
        if snapshot.stopped:
            text = _stopped_job(snapshot)
        else:
            tail = last_lines(log, 20, attempt_begins(log))
            names = (snapshot.id, str(job["stage"]), str(log.parents[1]), log.parents[1].name)
            earlier = first.setdefault(_reason(snapshot.message, tail, names), snapshot.id)
            text = f"{snapshot.id} failed: {snapshot.message or snapshot.state}"
            if earlier != snapshot.id:
                text = f"{snapshot.id} failed for the same reason as {earlier}"
            elif tail:
                text += "\n" + "\n".join(f"  | {line}" for line in tail.splitlines())
        text += f"\n  log: {log}" if log.exists() else ""
        text += f"\n  {_NOT_US}" if snapshot.stopped and snapshot.ending is None else ""
        yield text


def _stopped_job(snapshot: JobSnapshot) -> str:
    lines = "".join(f"\n  {line}" for line in details(snapshot))
    return f"{snapshot.id} was {sentence(snapshot)}{lines}"


def _reason(message: str, tail: str, names: Sequence[str]) -> tuple[str, ...]:
    """What two failed jobs have in common where they failed of the same: the message, the errors
    among the last lines and the very last ones, without the job's own names, times and addresses.
    """
    if FULL_DISK in message:
        return (FULL_DISK,)
    lines = [line.rstrip() for line in tail.splitlines() if line.strip()]
    last = len(lines) - _LAST_LINES
    kept = [line for at, line in enumerate(lines) if at >= last or _ERROR.match(line)]
    reason = []
    for text in (message, *kept):
        for name in sorted(filter(None, names), key=len, reverse=True):
            text = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w])", "JOB", text)
        reason.append(_VARIES.sub("#", text))
    return tuple(reason)


def _messages_in(
    driver_log: Path, layout: StoreLayout, jobs: Iterable[Mapping[str, Any]]
) -> list[str]:
    """What wrappers of this run said of jobs that another run has taken over since."""
    logs = {str(job["id"]): layout.staging(object_of(job)) / "logs" / "log.txt" for job in jobs}
    found: dict[str, str] = {}
    for line in last_lines(driver_log, 500).splitlines():
        match = _FAILED.match(line)
        if match is not None and match["job"] in logs:
            found[match["job"]] = match["why"]
    return [
        f"{job} failed: {why} (another run tries it again)\n  log: {logs[job]}"
        for job, why in found.items()
    ]


def tables(document: Document, layout: StoreLayout, width: int | None = None) -> str:
    """The tables of a sweep, else the comparisons of the plan that exist, else its metrics, in
    `width` columns; at the scale `smoke` below a line that says what they are worth."""
    smoke = _smoke(document, layout)
    parts = [
        *(["\n".join(wrapped(smoke, width))] if smoke else []),
        *_tables(document, layout, width),
    ]
    return "\n\n".join(parts)


def _smoke(document: Document, layout: StoreLayout) -> str:
    jobs = [job for job in document["jobs"] if job["produces"] != "Report"]
    done = [job for job in jobs if layout.is_published(object_of(job))]
    return smoke_headline(_scale(document), len(done), len(jobs), done)


def _scale(document: Document) -> str | None:
    scale: str | None = (document.get("experiment") or {}).get("scale")
    return scale


def _tables(document: Document, layout: StoreLayout, width: int | None) -> list[str]:
    comparisons, metrics, sweeps = [], [], []
    for job in document["jobs"]:
        name = object_of(job)
        if job["produces"] == "Report" and (layout.data(name) / _SWEEP).exists():
            found = read_json(layout.data(name) / _SWEEP)["tables"]
            sweeps += [_sweep(table, width) for table in found]
        if job["produces"] == "Comparison" and layout.is_published(name):
            value = read_json(layout.data(name) / COMPARISON_FILE)
            comparisons.append(_comparison(str(job["stage"]), value, width))
        elif job["produces"] == "Metrics" and layout.is_published(name):
            metrics.append((str(job["stage"]), read_json(layout.data(name) / METRICS_FILE)))
    if sweeps:
        return [*sweeps, *([_EACH] if comparisons else [])]
    return comparisons or ([_metrics(metrics, width)] if metrics else [])


def health(document: Document, layout: StoreLayout, more: str) -> list[str]:
    """Lines on the stages of the plan that learned nothing, one for the cells of a sweep that are
    alike; `more` shows those that are left out, at the scale `smoke` all of them."""
    done = [job for job in document["jobs"] if layout.is_published(object_of(job))]
    stages = [
        stage_facts(str(job["id"]), read_json(layout.manifest(object_of(job)))) for job in done
    ]
    found = findings(stages)
    if found and _scale(document) == SMOKE:
        return [f"{counted(len(found), 'finding')}: {more}"]
    return finding_lines(_folded(found), more)


def _folded(found: Sequence[HealthFinding]) -> list[HealthFinding]:
    """Of findings in several cells that differ by their numbers only the first, and in how many
    more cells it is."""
    alike: dict[tuple[str, str, int], list[HealthFinding]] = {}
    count: Counter[tuple[str, str]] = Counter()
    for each in found:
        text = without_numbers(each.text)
        count[each.stage, text] += 1
        name = of_all_cells(each.stage)
        alike.setdefault((name, text, count[each.stage, text]), []).append(each)
    return [
        first
        if not others
        else replace(
            first,
            stage=name,
            where=f"{first.where} (also in {counted(len(others), 'other cell')})",
        )
        for (name, _, _), (first, *others) in alike.items()
    ]


def report_path(document: Document, layout: StoreLayout) -> Path | None:
    """The page of the plan's report, when it exists."""
    for job in reversed(document["jobs"]):
        if job["produces"] == "Report":
            page = layout.data(object_of(job)) / REPORT_PAGE
            if page.exists():
                return page
    return None


def _comparison(title: str, value: Mapping[str, Any], width: int | None) -> str:
    found = value.get("rows") or []
    several = sum(bool(row.get("difference")) for row in found) > 1
    looped = any("loops" in row for row in found)
    loops = ["loops", "difference of loops"] if looped else []
    won = any("wins" in row for row in found)
    wins = ["win rate", "won, tied, lost"] if won else []
    # Of revisions other scores, of which lower or higher says nothing of better or worse.
    scores = value.get("scores") or ["reward", "success"]
    moved = "up, down, equal" if "scores" in value else "better, worse, equal"
    heads = [str(score).replace("_", " ") for score in scores]
    rows = [["", "tasks", *heads, *_difference_heads(several, moved), *loops, *wins]]
    for row in found:
        cells = [str(row.get("name")), _tried(row)]
        cells += [_interval(row.get(score)) for score in scores]
        cells += _difference_cells(row.get("difference"), several)
        if looped:
            cells += [_interval(row.get("loops")), _interval(row.get("loops_difference"), True)]
        if won:
            rate = row.get("wins")
            counts = [str((rate or {}).get(name, "-")) for name in ("wins", "ties", "losses")]
            cells += [_interval(rate), ", ".join(counts) if rate else "-"]
        rows.append(cells)
    head = f"{title}: means with {_confidence(value)}; differences are paired, to "
    notes = [*(value.get("notes") or []), *_cautions(found)]
    return _table(head + str(value.get("baseline")), rows, notes, width)


def _sweep(table: Mapping[str, Any], width: int | None) -> str:
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
    return _table(head, rows, _cautions(found), width)


def _difference_heads(several: bool, moved: str = "better, worse, equal") -> list[str]:
    return ["difference", "p", *(["p (Holm)"] if several else []), moved]


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
    found = []
    named = [(str(row.get("name") or row.get("stage")), row) for row in rows]
    if few := [name for name, row in named if (row.get("difference") or {}).get("few")]:
        found.append(
            f"few tasks moved ({', '.join(few)}): p enumerates all sign flips of these tasks, and "
            "the interval depends on the range of rewards more than on the data"
        )
    for name, row in named:
        if other := (row.get("difference") or {}).get("if_unseen"):
            found.append(
                f"no task moved by more than {other['furthest']:.3g} ({name}), and the interval "
                "assumes that none can; if unseen tasks move across the whole range of rewards, "
                f"p is {show_chance(other['p_value'])} and the interval "
                f"[{other['low']:+.3f}, {other['high']:+.3f}]"
            )
    if two := [name for name, row in named if row.get("runs") == _FEW_RUNS]:
        found.append(
            f"two runs ({', '.join(two)}) are few to estimate the variance between runs: where it "
            "exceeds that between tasks, the interval covers the mean less often than stated"
        )
    return found


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


def _metrics(found: Sequence[tuple[str, Mapping[str, Any]]], width: int | None) -> str:
    """One row for each evaluation, and one for each number of attempts that it took the best of."""
    looped = any("loops" in (value.get("asked") or {}) for _, value in found)
    rows = [["", "tasks", "reward", "success", *(["loops"] if looped else [])]]
    for stage, value in found:
        asked = value.get("asked") or {}
        scores = {stage: (value.get("reward"), value.get("success"))}
        for k in value.get("best_of") or ():
            best = asked.get(f"best_of({k})"), asked.get(f"pass_at({k})")
            scores[f"{stage}, best of {k}"] = best
        for name, both in scores.items():
            loops = [_interval(asked.get("loops"))] if looped else []
            rows.append([name, _tried(value), *map(_interval, both), *loops])
    return "\n".join(_fitted(rows, width))


def _interval(value: Any, signed: bool = False) -> str:
    if not isinstance(value, Mapping) or not isinstance(value.get("mean"), (int, float)):
        return "-"
    sign = "+" if signed else ""
    text = f"{value['mean']:{sign}.3f}"
    if isinstance(value.get("low"), (int, float)) and isinstance(value.get("high"), (int, float)):
        text += f" [{value['low']:{sign}.3f}, {value['high']:{sign}.3f}]"
    return text


def _table(
    head: str, rows: Sequence[Sequence[str]], notes: Iterable[str], width: int | None
) -> str:
    lines = [*wrapped(head, width), *_fitted(rows, width)]
    lines += [line for note in notes for line in wrapped(f"note: {note}", width, "  ")]
    return "\n".join(lines)


def _fitted(rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """A table in the width that there is. A success that equals the reward in each row is left out
    at any width; in a narrow terminal, first what another column has too."""
    heads = list(rows[0])
    if {"reward", "success"} <= {*heads}:
        reward, success = heads.index("reward"), heads.index("success")
        if all(row[reward] == row[success] for row in rows[1:]):
            rows = [[*row[:success], *row[success + 1 :]] for row in rows]
            heads = list(rows[0])
    drop = ["tasks", *(["p"] if "p (Holm)" in heads else [])]
    columns = [heads.index(name) for name in drop if name in heads]
    below = [n for n, name in enumerate(heads) if name.endswith((" equal", " lost"))]
    ends = range(1, len(heads))
    return fitted(rows, width, right=ends, indent="  ", drop=columns, below=below)
