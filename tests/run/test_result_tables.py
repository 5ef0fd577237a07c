"""Tables of results in their three forms: nothing is lost, no text is taken for markup."""

from __future__ import annotations

import csv
import io
import json

import pytest

from agentc.result_tables import ResultTable, read_tables, table_text, tables_text

HOSTILE = 'a & b_c 5 % "x", \\input{/etc/passwd}\n\\end{tabular} $x$ ~ ^ # {'


def table(*rows: tuple[object, ...]) -> ResultTable:
    columns = (("evaluation", "text"), ("reward", "interval"), ("tasks", "number"))
    return ResultTable("results", "Results of x", "95 % intervals", columns, rows)


def interval(mean: float, low: float | None, high: float | None, n: int) -> dict[str, object]:
    return {"mean": mean, "low": low, "high": high, "n": n}


def test_csv_has_each_end_and_n_with_all_digits() -> None:
    made = table((HOSTILE, interval(-1 / 3, -0.5, 0.0, 51), 51), ("none", None, None))
    head, first, second = csv.reader(io.StringIO(table_text(made, "csv")))
    assert head == ["evaluation", "reward", "reward low", "reward high", "reward n", "tasks"]
    assert first == [HOSTILE, str(-1 / 3), "-0.5", "0.0", "51", "51"]
    assert second == ["none", "", "", "", "", ""]


def test_latex_keeps_text_as_text_and_says_n_once_where_it_is_one() -> None:
    made = table((HOSTILE, interval(-1 / 3, -0.5, None, 51), 51), ("none", None, None))
    lines = table_text(made, "latex").splitlines()
    assert lines[0] == "% Results of x. 95 % intervals"
    assert r"evaluation & reward ($n = 51$) & tasks \\" in lines
    [row] = [line for line in lines if line.startswith("a ")]
    assert row.endswith(r" & $-$0.333 [$-$0.500, $\infty$] & 51 \\")
    assert r"a \& b\_c 5 \% " in row
    assert r"\textbackslash{}input\{/etc/passwd\} \textbackslash{}end\{tabular\} \$x\$" in row
    assert r"none & -- & -- \\" in lines
    assert [line for line in lines if "rule" in line] == [r"\toprule", r"\midrule", r"\bottomrule"]


def test_latex_says_n_of_each_where_they_differ() -> None:
    made = table(("a", interval(0.5, 0.4, 0.6, 10), 10), ("b", interval(0.25, 0.2, 0.3, 20), 20))
    text = table_text(made, "latex")
    assert "0.500 [0.400, 0.600, $n = 10$]" in text
    assert "0.250 [0.200, 0.300, $n = 20$]" in text


def test_what_is_written_is_read_again() -> None:
    made = table((HOSTILE, interval(0.5, None, 0.6, 3), 3), ("none", None, None))
    assert read_tables(tables_text([made])) == (made,)
    document = json.loads(table_text(made, "json"))
    assert document["rows"][0]["reward"] == {"mean": 0.5, "low": None, "high": 0.6, "n": 3}


@pytest.mark.parametrize("text", ["[]", '{"tables": [{}]}', "{", '{"tables": 3}'])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_tables(text)
