"""Several runs on one page: what each cost, the settings that differ, and the tables of the same
evaluations next to each other. One HTML file without a script; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

from agentc.kinds.artifacts import REPORT, VERDICTS
from agentc.kinds.field import Json
from agentc.kinds.table import makers
from agentc.plan.diff import Change, compare_plans
from agentc.plan.stage_names import folded_names
from agentc.plan.work import Document
from agentc.result_tables import ResultTable
from agentc.text import format_count, format_duration, some

_JOBS = "jobs"
_PRINTED_NUMBERS = ("p", "p (Holm)")
_MOST_SETTINGS = 200
_HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"""


@dataclass(frozen=True)
class RunSide:
    """A run: its label, its plan, the tables of its report by name, facts for its head, and the
    address of its own report, relative to the page."""

    label: str
    document: Document
    tables: Mapping[str, ResultTable]
    facts: Mapping[str, str]
    address: str


def side_by_side(sides: Sequence[RunSide]) -> str:
    """The page of two or more runs."""
    title = " · ".join(side.label for side in sides)
    style = resources.files("agentc.run").joinpath("side_by_side.css").read_text(encoding="utf-8")
    names = dict.fromkeys(name for side in sides for name in side.tables if name != _JOBS)
    common = [name for name in names if sum(name in side.tables for side in sides) > 1]
    alone = _named_alone(sides, [name for name in names if name not in common])
    sections = [
        _section("Runs", _runs(sides)),
        _section("Settings that differ", _settings(sides)),
        *(_section(_title(name, sides), body) for name in common if (body := _table(name, sides))),
        _section("Tables of one run only", alone),
        _section("Wall time of each job", _times(sides)),
    ]
    return (
        f"{_HEAD}<title>{escape(title)}: runs side by side</title>\n<style>{style}</style>\n"
        f'</head>\n<body>\n<header><p class="quiet">agentc report</p><h1>{escape(title)}</h1>'
        f"</header>\n<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _named_alone(sides: Sequence[RunSide], names: Sequence[str]) -> str:
    """Tables that a single run has: its own report shows them."""
    lines = []
    for number, side in enumerate(sides):
        own = [side.tables[name].title for name in names if name in side.tables]
        if own:
            link = f'<a href="{escape(side.address)}">{escape(side.label)}</a>'
            lines.append(f"<p>{_key(number)}{link}: {escape(some(own))}</p>\n")
    return "".join(lines)


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}</section>\n" if body else ""


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]], above: str = "") -> str:
    """A table; heads and cells are HTML already, the first cell of a row names it."""
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "\n".join(
        f"<tr><th>{name}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for name, *cells in rows
    )
    return (
        f'<div class="scroll"><table>\n<thead>{above}<tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>\n"
    )


# Runs and what they cost.

_LAST_FACTS = ("began", "commit", "unfinished")
"""Behind the params."""
_COSTS = ("wall_s", "cpu_s", "gpu_hours", "tokens_in", "tokens_out")


def _runs(sides: Sequence[RunSide]) -> str:
    facts = list(dict.fromkeys(name for side in sides for name in side.facts))
    facts.sort(key=lambda name: _LAST_FACTS.index(name) + 1 if name in _LAST_FACTS else 0)
    heads = [escape(name) for name in ("run", *facts)]
    heads += ["jobs", "work", "CPU time", "GPU-hours", "tokens in", "tokens out"]
    rows = []
    for number, side in enumerate(sides):
        name = _key(number) + f'<a href="{escape(side.address)}">{escape(side.label)}</a>'
        told = [escape(side.facts.get(fact, "")) for fact in facts]
        rows.append([name, *told, *_costs(side.tables.get(_JOBS))])
    return _rows(heads, rows)


def _costs(table: ResultTable | None) -> list[str]:
    if table is None:
        return [""] * (1 + len(_COSTS))
    found = table.document()["rows"]
    jobs = sum(row["kind"] != "server" for row in found)
    work, cpu, gpus, read, written = (_sum(found, name) for name in _COSTS)
    shown = [
        *("" if each is None else format_duration(each) for each in (work, cpu)),
        "" if gpus is None else f"{gpus:.2f}",
        *("" if each is None else format_count(each) for each in (read, written)),
    ]
    return [str(jobs), *map(escape, shown)]


def _sum(rows: Sequence[Mapping[str, Any]], column: str) -> float | None:
    """Of a column; the wall time of servers is that of their clients."""
    values = [
        float(row[column])
        for row in rows
        if row.get(column) is not None and (column != "wall_s" or row["kind"] != "server")
    ]
    return sum(values) if values else None


# Settings, each run compared with the first.

_Values = dict[int, Json]


def _settings(sides: Sequence[RunSide]) -> str:
    first = sides[0]
    changed: dict[tuple[str, str], _Values] = {}
    lines: list[str] = []
    known: dict[str, None] = {}
    for number, side in enumerate(sides[1:], 1):
        derived = _derived(first.document) | _derived(side.document)
        jobs = compare_plans(first.document, side.document)
        differing = [diff for diff in jobs.values() if diff.id not in derived]
        known |= dict.fromkeys(jobs)
        for diff in differing:
            for change in filter(_is_setting, diff.changes):
                values = changed.setdefault((diff.id, change.path), {0: _value(change, "before")})
                values[number] = _value(change, "after")
        for words, novelty in ((side.label, "new"), (first.label, "gone")):
            names = [diff.id for diff in differing if diff.novelty == novelty]
            if names:
                lines.append(f"Only in {words}: {some(folded_names(names, known))}.")
    alike: dict[str, tuple[str, _Values, list[str]]] = {}
    for (job, path), values in changed.items():
        entry = alike.setdefault(f"{path} {sorted(values.items())}", (path, values, []))
        entry[2].append(job)
    heads = ["setting", "stages", *_heads(sides)]
    rows = [
        [
            escape(path.removeprefix("settings.").removeprefix("facts.")),
            escape(some(folded_names(jobs, known), 6)),
            *(_value_html(values.get(number, values[0])) for number in range(len(sides))),
        ]
        for path, values, jobs in list(alike.values())[:_MOST_SETTINGS]
    ]
    more = len(alike) - len(rows)
    lines += [f"{more} more settings differ; agentc diff names them."] if more > 0 else []
    if not rows and not lines:
        lines = ["None: the same settings in every stage."]
    elif len(sides) == 2:
        lines.append(f"agentc diff {sides[0].label} {sides[1].label} lists what follows from them.")
    notes = "".join(f'<p class="quiet">{escape(line)}</p>\n' for line in lines)
    return (_rows(heads, rows) if rows else "") + notes


def _derived(document: Document) -> set[str]:
    """Reports and verdicts, which follow from the others; tables show what claims say."""
    kinds = (*makers(REPORT), *makers(VERDICTS))
    return {str(job["id"]) for job in document["jobs"] if job["kind"] in kinds}


def _is_setting(change: Change) -> bool:
    """What a spec sets: no wiring of stages, and nothing that tables and claims derive from it."""
    own = change.path in ("backend", "version", "environment", "kind")
    return own or change.path.startswith(("settings.", "facts.")) or " server." in change.path


def _value(change: Change, side: str) -> Json:
    value: Json = getattr(change, side)
    if value is None and change.default is not None:
        return f"{_yaml(change.default)} (default)"
    return value


def _value_html(value: Json) -> str:
    text = "default" if value is None else _yaml(value)
    return escape(text if len(text) <= 120 else f"{text[:120]}…")


def _yaml(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# Tables of evaluations: a row for each, a column of each run under each number.


def _title(name: str, sides: Sequence[RunSide]) -> str:
    return next(side.tables[name].title for side in sides if name in side.tables)


def _table(name: str, sides: Sequence[RunSide]) -> str:
    """Intervals, p-values and verdicts of one table; nothing where it has no interval."""
    found = [side.tables.get(name) for side in sides]
    columns = _columns([table for table in found if table is not None])
    if not any(kind == "interval" for _, kind in columns):
        return ""
    rows = [{} if table is None else _by_name(table) for table in found]
    names = list(dict.fromkeys(row for table in rows for row in table))
    ends = _ends([cells for table in rows for cells in table.values()], columns)
    runs = "".join(_heads(sides))
    above = "<tr><th></th>" + "".join(
        f'<th colspan="{len(sides)}" class="group">{escape(column)}</th>' for column, _ in columns
    )
    heads = ["", *(each for _ in columns for each in _heads(sides))]
    body = [
        [
            escape(row),
            *(
                _cell(table.get(row, {}).get(column), kind, ends.get(column))
                for column, kind in columns
                for table in rows
            ),
        ]
        for row in names
    ]
    notes = dict.fromkeys(table.note for table in found if table is not None and table.note)
    note = "".join(f'<p class="quiet">{escape(each)}</p>\n' for each in notes)
    return _rows(heads, body, above + "</tr>" if runs else "") + note


def _columns(tables: Sequence[ResultTable]) -> list[tuple[str, str]]:
    """Those that are compared; success where it differs from the reward in any row."""
    found: dict[str, str] = {}
    for table in tables:
        for column, kind in table.columns[1:]:
            verdict = kind == "text" and column == "verdict"
            if kind == "interval" or column in _PRINTED_NUMBERS or verdict:
                found.setdefault(column, kind)
    same = all(
        row.get("success") == row.get("reward")
        for table in tables
        for row in table.document()["rows"]
    )
    if same and {"reward", "success"} <= found.keys():
        del found["success"]
    rows = [row for table in tables for row in table.document()["rows"]]
    return [
        (column, kind)
        for column, kind in found.items()
        if any(row.get(column) is not None for row in rows)
    ]


def _by_name(table: ResultTable) -> dict[str, dict[str, Any]]:
    """The rows by their text columns, without those that describe a claim."""
    found: dict[str, dict[str, Any]] = {}
    apart = [
        name for name, kind in table.columns[1:] if kind == "text" and name not in _DESCRIPTIONS
    ]
    for row in table.document()["rows"]:
        words = [str(row[table.columns[0][0]]), *(f"{name}={row[name]}" for name in apart)]
        found[", ".join(words)] = row
    return found


_DESCRIPTIONS = ("what", "measured", "relation", "verdict", "because")


def _ends(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[tuple[str, str]]
) -> dict[str, tuple[float, float]]:
    """The scale of each column of intervals: all of them, and 0."""
    found = {}
    for column, kind in columns:
        cells = [row[column] for row in rows if kind == "interval" and row.get(column)]
        ends = [0.0, *(cell[end] for cell in cells for end in ("low", "mean", "high")
                       if cell.get(end) is not None)]  # fmt: skip
        if max(ends) > min(ends):
            found[column] = (min(ends), max(ends))
    return found


def _cell(value: Any, kind: str, ends: tuple[float, float] | None) -> str:
    if value is None:
        return '<span class="quiet">–</span>'
    if kind == "text":
        return escape(str(value))
    if kind == "number":
        return "&lt; 0.0001" if 0 <= value < 0.0001 else f"{value:.4f}"
    if value.get("mean") is None:
        return '<span class="quiet">–</span>'
    low, high = (value.get(end) for end in ("low", "high"))
    limits = "[" + ", ".join("open" if end is None else f"{end:.3f}" for end in (low, high)) + "]"
    size = "" if value.get("n") is None else f" n={value['n']}"
    mark = "" if ends is None or None in (low, high) else _mark(value, ends)
    return f'<b>{value["mean"]:.3f}</b> <span class="quiet">{limits}{size}</span>{mark}'


def _mark(value: Mapping[str, Any], ends: tuple[float, float]) -> str:
    """The interval with its mean, and zero, on the scale of the column."""

    def place(number: float) -> str:
        return f"{100 * (number - ends[0]) / (ends[1] - ends[0]):.2f}%"

    width = f"{100 * (value['high'] - value['low']) / (ends[1] - ends[0]):.2f}%"
    return (
        '<span class="mark" aria-hidden="true">'
        f'<i class="zero" style="left:{place(0.0)}"></i>'
        f'<i class="range" style="left:{place(value["low"])};width:{width}"></i>'
        f'<i class="point" style="left:{place(value["mean"])}"></i></span>'
    )


def _times(sides: Sequence[RunSide]) -> str:
    found = [side.tables.get(_JOBS) for side in sides]
    rows = [{} if table is None else _by_first(table) for table in found]
    names = list(dict.fromkeys(name for table in rows for name in table))
    if not names:
        return ""
    body = [
        [
            escape(name),
            *("" if (s := table.get(name)) is None else format_duration(s) for table in rows),
        ]
        for name in names
    ]
    count = f"<details><summary>{len(names)} jobs and servers</summary>\n"
    return f"{count}{_rows(['', *_heads(sides)], body)}</details>\n"


def _by_first(table: ResultTable) -> dict[str, float | None]:
    return {row["job"]: row["wall_s"] for row in table.document()["rows"]}


def _heads(sides: Sequence[RunSide]) -> list[str]:
    return [_key(number) + escape(side.label) for number, side in enumerate(sides)]


def _key(number: int) -> str:
    """The colour of a run."""
    return f'<i class="key k{number % 6}"></i>'
