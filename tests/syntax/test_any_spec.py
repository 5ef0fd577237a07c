"""Specs that no person would write, broken and large: they are read in seconds, or refused; nothing
raises. Neighbour: `test_module.py`."""

from __future__ import annotations

import time
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.rounds_spec import HEAD, STAGES, Read, codes

from agentc.backend_api import BackendTable
from agentc.diagnostics import Sink
from agentc.diagnostics.diagnostic import Source
from agentc.front.read_module import build_module
from agentc.source.load import load_file, load_text


@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_shuffled_pieces_of_specs_never_raise(
    data: st.DataObject, small_table: BackendTable
) -> None:
    lines = (HEAD + STAGES).split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["drop", "copy", "indent", "word", "cut"]))
        line = lines[where]
        match change:
            case "drop":
                del lines[where]
            case "copy":
                lines.insert(data.draw(st.integers(0, len(lines) - 1)), line)
            case "indent":
                lines[where] = "  " + line
            case "word":
                words = ["null", "[]", "{}", '"{{ round }}"', "*a", "eto.*.dpo", "1e999", "no", "-"]
                head, colon, _ = line.partition(":")
                lines[where] = f"{head}{colon} {data.draw(st.sampled_from(words))}"
            case "cut":
                lines[where] = line[: data.draw(st.integers(0, len(line)))]
        lines = lines or [""]
    sink = Sink()
    source = Source("x.yaml", "\n".join(lines))
    build_module(source, load_text(source, sink), {}, small_table, sink)


values = st.recursive(
    st.sampled_from(["null", "1", "x", "'{{ a }}'", "expert", "2e-5", "eto.*.dpo"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(
            st.sampled_from(
                [
                    "kind",
                    "repeat",
                    "n",
                    "until",
                    "stage",
                    "stages",
                    "carry",
                    "type",
                    "backend",
                    "per_round",
                ]
            ),
            inner,
            max_size=4,
        ).map(lambda d: "{" + ", ".join(f"{k}: {v}" for k, v in d.items()) + "}")
    ),
    max_leaves=12,
)


@given(section=st.sampled_from(
    ["agentc", "name", "paper", "params", "models", "environments", "servers", "prompts",
     "defaults", "stages", "discrepancies", "description"]), value=values)  # fmt: skip
@settings(max_examples=400, deadline=None)
def test_any_value_anywhere_never_raises(
    section: str, value: str, small_table: BackendTable
) -> None:
    for text in (
        f"agentc: 1\nname: x\n{section}: {value}\n",
        f"agentc: 1\nname: x\n{section}:\n  a: {value}\n  b: {{kind: compare, of: {value}}}\n",
        f"agentc: 1\nname: x\nstages:\n  {section}:\n    repeat: {value}\n",
    ):
        sink = Sink()
        source = Source("x.yaml", text)
        build_module(source, load_text(source, sink), {}, small_table, sink)


def test_ten_thousand_stages_are_read_in_seconds(tmp_path: Path, small_table: BackendTable) -> None:
    spec = tmp_path / "large.yaml"
    text = STAGES.replace("n: 3", "n: 2_500").replace(
        "{per_round: [1e-5, 1e-6, 1e-7]}", '"{{ 1e-5 / round }}"'
    )
    spec.write_text(HEAD + text)
    sink = Sink()
    start = time.process_time()
    _, found = build_module(*load_file(spec, sink), {}, small_table, sink)
    took = time.process_time() - start
    assert not sink.has_errors
    assert found is not None
    assert len(found.stages) == 10_005
    assert took < 5


def test_hostile_counts_are_refused(read_text: Read) -> None:
    assert codes(read_text, HEAD + STAGES.replace("n: 3", "n: 1e9")) == ["AGC205"]
    many = "".join(f"        s{n}: {{kind: compare, of: [last]}}\n" for n in range(50))
    text = STAGES.replace("n: 3", "n: 9999").replace(
        "        evaluate:", many + "        evaluate:"
    )
    assert "AGC105" in codes(read_text, HEAD + text)
