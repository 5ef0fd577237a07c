"""Tables of results as CSV, LaTeX and JSON: intervals and counts beside each number.

A report's job writes them (`tables.json`, and links in its page), `agentc report --table` reads
them. It stands here since programs of jobs have the runtime and nothing else of the compiler.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

TABLES_FILE = "tables.json"
FORMATS = ("csv", "latex", "json")
ColumnKind = Literal["text", "number", "interval"]
_PARTS = ("low", "high", "n")
"""What a CSV file has of an interval beside the mean, which bears the column's name."""
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "\u2212": "$-$",
    "\u00d7": r"$\times$", "\u2265": r"$\geq$", "\u2264": r"$\leq$",
}  # fmt: skip


@dataclass(frozen=True)
class ResultTable:
    """`columns` are (name, kind). In a row an interval is a mapping with `mean`, `low`, `high`
    (None where it is open) and `n`, or None; a number may be None, too. `note` is for readers."""

    name: str
    title: str
    note: str
    columns: tuple[tuple[str, ColumnKind], ...]
    rows: tuple[tuple[Any, ...], ...]

    def document(self) -> dict[str, Any]:
        """As JSON: each row a mapping by column."""
        names = [name for name, _ in self.columns]
        return {
            "name": self.name,
            "title": self.title,
            "note": self.note,
            "columns": [{"name": name, "kind": kind} for name, kind in self.columns],
            "rows": [{name: row[n] for n, name in enumerate(names)} for row in self.rows],
        }


def read_tables(text: str) -> tuple[ResultTable, ...]:
    """Tables of a `tables.json`. Raises ValueError where it is none."""
    try:
        return tuple(_read(each) for each in json.loads(text)["tables"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no tables of results: {error}") from error


def tables_text(tables: Sequence[ResultTable]) -> str:
    """The content of a `tables.json`."""
    found = {"tables": [table.document() for table in tables]}
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def table_text(table: ResultTable, form: str) -> str:
    """A table in one of FORMATS."""
    if form == "json":
        return json.dumps(table.document(), ensure_ascii=False, indent=1) + "\n"
    return _csv(table) if form == "csv" else _latex(table)


def _read(value: Mapping[str, Any]) -> ResultTable:
    columns = tuple((str(c["name"]), _kind(c["kind"])) for c in value["columns"])
    rows = tuple(tuple(row[name] for name, _ in columns) for row in value["rows"])
    return ResultTable(str(value["name"]), str(value["title"]), str(value["note"]), columns, rows)


def _kind(text: str) -> ColumnKind:
    kinds: dict[str, ColumnKind] = {"text": "text", "number": "number", "interval": "interval"}
    return kinds[text]


def _csv(table: ResultTable) -> str:
    """A line of names, then the rows; numbers with all their digits, nothing where none is."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names: list[str] = []
    for name, kind in table.columns:
        names.append(name)
        names += [f"{name} {part}" for part in _PARTS] if kind == "interval" else []
    writer.writerow(names)
    for row in table.rows:
        cells: list[Any] = []
        for place, (_, kind) in enumerate(table.columns):
            value = row[place]
            if kind == "interval":
                cells += [(value or {}).get(part) for part in ("mean", *_PARTS)]
            else:
                cells.append(value)
        writer.writerow(["" if cell is None else cell for cell in cells])
    return out.getvalue()


def _latex(table: ResultTable) -> str:
    """A tabular with the lines of booktabs; an interval is `0.420 [0.330, 0.516]`, and where all of
    a column rest on one n the column's name says it."""
    shown = [_latex_column(table, place) for place in range(len(table.columns))]
    align = "".join("l" if kind == "text" else "r" for _, kind in table.columns)
    comment = re.sub(r"\s+", " ", f"{table.title}. {table.note}").strip()
    lines = [
        f"% {comment}",
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        " & ".join(column[0] for column in shown) + r" \\",
        r"\midrule",
        *(
            " & ".join(column[place] for column in shown) + r" \\"
            for place in range(1, len(table.rows) + 1)
        ),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_column(table: ResultTable, place: int) -> list[str]:
    name, kind = table.columns[place]
    values = [row[place] for row in table.rows]
    if kind == "text":
        return [escaped(name), *(escaped(str("" if v is None else v)) for v in values)]
    if kind == "number":
        return [escaped(name), *map(_latex_number, values)]
    sizes = {value.get("n") for value in values if value}
    one = sizes.pop() if len(sizes) == 1 else None
    head = f"{escaped(name)} ($n = {one}$)" if one is not None else escaped(name)
    return [head, *(_latex_interval(value, with_n=one is None) for value in values)]


def _latex_interval(value: Mapping[str, Any] | None, *, with_n: bool) -> str:
    if not value or value.get("mean") is None:
        return "--"
    ends = (
        r"$\infty$" if value.get(end) is None else _latex_number(float(value[end]))
        for end in ("low", "high")
    )
    size = f", $n = {value['n']}$" if with_n and value.get("n") is not None else ""
    return f"{_latex_number(float(value['mean']))} [{', '.join(ends)}{size}]"


def _latex_number(value: float | None) -> str:
    if value is None:
        return "--"
    if isinstance(value, int):
        return str(value) if value >= 0 else f"$-${-value}"
    text = (
        f"{abs(value):.3f}" if 0.001 <= abs(value) < 10_000 or value == 0 else f"{abs(value):.2e}"
    )
    return f"$-${text}" if value < 0 else text


def escaped(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_LATEX.get(letter, letter) for letter in re.sub(r"\s+", " ", text))
