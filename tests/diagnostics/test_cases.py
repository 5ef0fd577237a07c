"""Malformed specs: each in `cases/` gets the diagnostics, at the places, that its first line says,
rendered as its `.expected` file shows. UPDATE_EXPECTED=1 rewrites the rendered text only.

`# expect: CODE LINE:COLUMN, ...` lists diagnostics in a file; those without a place in the file,
such as about `-p`, are in the rendered text alone. `# params: name=value` gives `-p`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from agentc.backend_api import BackendTable
from agentc.diagnostics import Sink, render_text
from agentc.front.read_module import build_module
from agentc.source.load import load_bytes

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


@pytest.mark.parametrize("case", CASES, ids=[case.stem for case in CASES])
def test_malformed_spec(case: Path, small_table: BackendTable) -> None:
    data = case.read_bytes()
    header = re.match(r"# expect:(.*)\n(?:# params: (.*)\n)?", data.decode())
    assert header is not None
    params = dict(pair.split("=", 1) for pair in (header[2] or "").split())
    sink = Sink()
    source, root = load_bytes(data, case.name, sink)
    build_module(source, root, params, small_table, sink)
    found = sink.sorted()

    places = [
        f"{each.code} {each.span.line}:{each.span.column}"
        for each in found
        if each.span is not None and each.span.source is source
    ]
    expected = [word.strip() for word in header[1].split(",") if word.strip()]
    assert sorted(places) == sorted(expected)
    assert found

    text = render_text(found)
    file = case.with_suffix(".expected")
    if os.environ.get("UPDATE_EXPECTED") == "1":
        file.write_text(text)
    assert text == file.read_text()
