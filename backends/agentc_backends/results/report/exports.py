"""The page's tables for other programs: what `tables.json` holds, and links that need no network.

Numbers are those of the page before they are rounded. `agentc.result_tables` writes them
as CSV, LaTeX and JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from agentc.result_tables import ColumnKind, ResultTable, table_text
from agentc_backends.results.report import evaluation_tables, fact_tables, job_tables
from agentc_backends.results.report.collect import Collection

_MOST_ROWS = 1000
"""Of a table with links in the page; longer ones are in `tables.json` alone."""
_TYPES = {"csv": ("CSV", "text/csv"), "latex": ("LaTeX", "application/x-tex"),
          "json": ("JSON", "application/json")}  # fmt: skip
_SUFFIX = {"csv": "csv", "latex": "tex", "json": "json"}
_JOBS = ("kind", "wall_s", "cpu_s", "max_rss_mb", "tokens_in", "tokens_out", "gpu_hours",
         "gpu_memory_mb", "attempts")  # fmt: skip

Columns: TypeAlias = tuple[tuple[str, ColumnKind], ...]


def result_tables(collection: Collection, experiment: Mapping[str, Any]) -> tuple[ResultTable, ...]:
    """Every table of the page, in its order, each under a name of its own."""
    plain = (
        ("searches", "Searches", fact_tables.searches(collection)),
        ("revisions", "Revisions", fact_tables.revisions(collection)),
        ("mixtures", "Mixtures", fact_tables.mixtures(collection)),
        ("hidden-texts", "Hidden texts", fact_tables.hidden_texts(collection)),
        ("candidates", "Candidates", fact_tables.sampled(collection)),
        ("rankings", "Rankings", fact_tables.ranked(collection)),
        ("turn-pairs", "Pairs of candidates", fact_tables.turn_pairs(collection)),
    )
    found = [
        *(_sweep(table) for table in evaluation_tables.sweep_tables(collection, experiment)),
        *(_comparison(table) for table in evaluation_tables.comparisons(collection)),
        *(_evaluations(table) for table in evaluation_tables.evaluations(collection)),
        *(_claims(node) for node in evaluation_tables.claim_tables(collection)),
        *(_plain(name, title, rows) for name, title, rows in plain if rows),
        _jobs([*job_tables.jobs(collection), *job_tables.servers(collection)]),
    ]
    return tuple(found)


def download_links(
    found: Iterable[ResultTable], experiment: str
) -> dict[str, list[dict[str, str]]]:
    """By table `[{"label", "file", "address"}]`; the address has the content itself."""
    return {
        table.name: [
            {
                "label": label,
                "file": f"{experiment}-{table.name}.{_SUFFIX[form]}".replace("/", "-"),
                "address": f"data:{kind};charset=utf-8;base64," + _encoded(table_text(table, form)),
            }
            for form, (label, kind) in _TYPES.items()
        ]
        for table in found
        if len(table.rows) <= _MOST_ROWS
    }


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode("utf-8")).decode("ascii")


def _sweep(table: Mapping[str, Any]) -> ResultTable:
    columns: list[tuple[str, ColumnKind]] = [("evaluation", "text")]
    columns += [(axis, "text") for axis in table["others"]]
    columns += [("reward", "interval"), *_DIFFERENCE, ("tasks", "number"), ("runs", "number")]
    rows = [
        (
            row["stage"], *map(str, row["cell"]), _interval(row["reward"]),
            *_difference(row["difference"]), (row["reward"] or {}).get("n", 0), row["runs"],
        )
        for row in table["rows"]
    ]  # fmt: skip
    pooled = f", pooled over {', '.join(table['seeds'])}" if table["seeds"] else ""
    base = f"; differences from {table['baseline']}" if table["baseline"] else ""
    return ResultTable(
        f"sweep:{table['on']}", f"{table['on']} over the sweep{pooled}",
        f"{_confidence(table)} intervals{base}", tuple(columns), tuple(rows),
    )  # fmt: skip


def _comparison(table: Mapping[str, Any]) -> ResultTable:
    first, second = table["scores"]
    columns: list[tuple[str, ColumnKind]] = [
        ("evaluation", "text"), (first, "interval"), *_DIFFERENCE, (second, "interval"),
        ("tasks", "number"), ("episodes", "number"),
    ]  # fmt: skip
    columns += [("loops", "interval"), ("loops difference", "interval")] if table["loops"] else []
    columns += [("win rate", "interval")] if table["wins"] else []
    columns += [(each, "number") for each in ("won", "tied", "lost")] if table["wins"] else []
    rows = []
    for row in table["rows"]:
        cells = [
            row["name"], _interval(row[first]), *_difference(row["difference"]),
            _interval(row[second]), row["n_tasks"], row["n"],
        ]  # fmt: skip
        if table["loops"]:
            cells += [_interval(row.get("loops")), _interval(row.get("loops_difference"))]
        if table["wins"]:
            won = row.get("wins") or {}
            cells += [_interval(row.get("wins"))]
            cells += [won.get(each) for each in ("wins", "ties", "losses")]
        rows.append(tuple(cells))
    note = f"{_confidence(table)} intervals; differences from {table['baseline']}, paired by task"
    return ResultTable(table["name"], f"Comparison {table['name']}", note, tuple(columns),
                       tuple(rows))  # fmt: skip


def _evaluations(table: Mapping[str, Any]) -> ResultTable:
    columns: Columns = (
        ("evaluation", "text"), ("reward", "interval"), ("success", "interval"),
        ("turns", "number"), ("invalid share", "number"), ("loops", "interval"),
        ("tasks", "number"), ("episodes", "number"), ("errors", "number"),
    )  # fmt: skip
    rows = [
        (
            row["name"], _interval(row["reward"]), _interval(row["success"]), row["turns"],
            row["invalid"], _interval(row["loops"]), row["n_tasks"], row["n"], row["n_error"],
        )
        for row in table["rows"]
    ]  # fmt: skip
    level: Mapping[str, Any] = next((row["reward"] for row in table["rows"] if row["reward"]), {})
    note = f"{_confidence(level)} intervals; errors are left out of every mean"
    return ResultTable(f"evaluations:{table['on']}", f"Evaluations on {table['on']}", note,
                       *_filled(columns, rows))  # fmt: skip


def _claims(table: Mapping[str, Any]) -> ResultTable:
    columns: Columns = (
        ("claim", "text"), ("what", "text"), ("measured", "text"), ("relation", "text"),
        ("claimed", "number"), ("paper", "interval"), ("observed", "interval"),
        ("verdict", "text"), ("because", "text"),
    )  # fmt: skip
    rows = []
    for row in table["rows"]:
        seen = row["observed"]
        # The end that the page draws for an open interval is no number of the result.
        seen = {**seen, "high": None} if seen and "open" in seen else seen
        rows.append(
            (
                row["name"], row["what"], row["measured"], row["relation"], row["value"],
                _interval(row["paper"]), _interval(seen), row["verdict"], row["because"],
            )
        )  # fmt: skip
    return ResultTable(table["name"], "Claims", f"{_confidence(table)} intervals", columns,
                       tuple(rows))  # fmt: skip


def _plain(name: str, title: str, rows: Sequence[Mapping[str, Any]]) -> ResultTable:
    """Rows of numbers by name; counts by name get a column for each."""
    flat = [_spread(row) for row in rows]
    names = dict.fromkeys(key for row in flat for key in row if key != "name")
    columns: list[tuple[str, ColumnKind]] = [("stage", "text")]
    columns += [(key, "number") for key in names]
    cells = tuple((row["name"], *(row.get(key) for key in names)) for row in flat)
    return ResultTable(name, title, "", tuple(columns), cells)


def _spread(row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            found |= {f"{key} {part}": count for part, count in value.items()}
        elif key == "name" or value is None or isinstance(value, (int, float)):
            found[key] = value
    return found


def _jobs(rows: Sequence[Mapping[str, Any]]) -> ResultTable:
    columns: list[tuple[str, ColumnKind]] = [("job", "text"), ("kind", "text")]
    columns += [(name, "number") for name in _JOBS[1:]]
    cells = tuple((row["name"], *(row[name] for name in _JOBS)) for row in rows)
    return ResultTable("jobs", "Jobs", "times in seconds", tuple(columns), cells)


_DIFFERENCE: Columns = (
    ("difference", "interval"), ("p", "number"), ("p (Holm)", "number"),
    ("better", "number"), ("worse", "number"), ("equal", "number"),
)  # fmt: skip


def _difference(value: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """What `_DIFFERENCE` names."""
    if not value:
        return (None,) * len(_DIFFERENCE)
    counts = (value.get(word) for word in ("better", "worse", "equal"))
    return (_interval(value), value.get("p_value"), value.get("p_holm"), *counts)


def _interval(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not value or value.get("mean") is None:
        return None
    return {part: value.get(part) for part in ("mean", "low", "high", "n")}


def _filled(
    columns: Columns, rows: Sequence[tuple[Any, ...]]
) -> tuple[Columns, tuple[tuple[Any, ...], ...]]:
    """Without columns that are empty in every row."""
    kept = [n for n in range(len(columns)) if any(row[n] is not None for row in rows)]
    return tuple(columns[n] for n in kept), tuple(tuple(row[n] for n in kept) for row in rows)


def _confidence(value: Mapping[str, Any]) -> str:
    return f"{100 * float(value.get('confidence', 0.95)):.4g} %"
