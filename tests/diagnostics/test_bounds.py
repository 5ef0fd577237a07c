"""What a spec of any number of errors may cost, counted in work rather than time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.diagnostics import Sink, render
from agentc.diagnostics import diagnostic as source_lines
from agentc.diagnostics.diagnostic import Source
from agentc.diagnostics.suggest import bounded_suggestions, suggestions
from agentc.front.bind_stage import StageBinder
from agentc.front.expand_repeat import Unrolled
from agentc.ir.module import Stage
from agentc.source import load


def test_so_many_diagnostics_are_kept_and_the_others_counted() -> None:
    sink = Sink()
    for number in range(2_500):
        sink.warning("AGC411", f"warning {number}")
    assert not sink.has_errors
    assert not sink.is_full
    sink.error("AGC401", "an error for which there is no room")
    assert sink.has_errors
    found = sink.sorted()
    assert len(found) == 2_001
    assert "501 further" in found[-1].message


def test_names_are_compared_so_often_and_then_not_offered() -> None:
    names = [f"stage_{number}" for number in range(1_000)]
    assert suggestions("stage_1x", names)
    with bounded_suggestions():
        offered = [bool(suggestions("stage_1x", names)) for _ in range(60)]
    assert offered == [True] * 50 + [False] * 10
    assert suggestions("stage_1x", names)


def test_thousands_of_unknown_names_are_held_against_thousands_once(tmp_path: Path) -> None:
    lines = [f"  s{n}: {{kind: sft, model: b{n}, data: x, lr: 1e999}}" for n in range(3_000)]
    spec = tmp_path / "spec.yaml"
    spec.write_text("\n".join(["agentc: 1", "name: demo", "stages:", *lines]))
    found = compile_spec(spec, {}, load_backends())
    assert found.plan is None
    assert len(found.diagnostics) <= 2_001


@pytest.mark.parametrize("line", ['"\\L": 1', "[]: 1", "<<: 1"])
def test_a_file_is_not_read_on_when_there_is_no_room_for_more(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = load._events
    read: list[str] = []

    def counted(text: str) -> Iterator[yaml.Event]:
        for event in events(text):
            read.append(type(event).__name__)
            yield event

    monkeypatch.setattr(load, "_events", counted)
    sink = Sink()
    # The syntax error at the end is found by a parser that is far slower.
    text = f"{line}\n" * 20_000 + "x: [\n"
    assert load.load_text(Source("spec.yaml", text), sink) is None
    assert len(read) < 10_000
    assert sink.has_errors
    found = sink.sorted()
    assert len(found) == 2_001
    assert found[-1].message == "2000 errors and warnings; what follows is not looked at"


def test_a_source_is_split_into_lines_once_however_many_diagnostics_quote_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    splits: list[str] = []

    class Counted:
        def split(self, text: str) -> list[str]:
            splits.append(text)
            return breaks.split(text)

    breaks: re.Pattern[str] = source_lines._BREAK
    sink = Sink()
    load.load_text(Source("spec.yaml", '"\\L": 1\n' * 60), sink)
    monkeypatch.setattr(source_lines, "_BREAK", Counted())
    assert "line 1" in render.render_text(sink.sorted())
    assert len(splits) == 1


@pytest.mark.parametrize(("cells", "rounds"), [(1, 10_000), (9, 1_000), (900, 10)])
def test_rounds_and_cells_with_the_same_errors_are_looked_at_so_often(
    cells: int, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind = StageBinder.bind
    bound: list[str] = []

    def counted(binder: StageBinder, unrolled: Unrolled) -> Stage | None:
        bound.append(unrolled.id)
        return bind(binder, unrolled)

    monkeypatch.setattr(StageBinder, "bind", counted)
    stages = [f"        s{n}: {{kind: sft, model: nope, data: x, lr: y}}" for n in range(9)]
    spec = tmp_path / "spec.yaml"
    header = ["agentc: 1", "name: demo", "params: {seed: {type: int, default: 1}}"]
    header += [f"matrix: {{seed: {list(range(cells))}}}", "stages:", "  eto:", "    repeat:"]
    last = "  last: {kind: sft, model: other, data: x, lr: y}"
    lines = [*header, f"      n: {rounds}", "      stages:", *stages, last]
    spec.write_text("\n".join(lines))
    found = compile_spec(spec, {}, load_backends())
    assert len(bound) < 4_000
    # Every stage is seen, also one behind all rounds.
    assert {each.span.line for each in found.diagnostics if each.span} >= set(range(10, 20))
    assert any("no stage or model `other`" in each.message for each in found.diagnostics)


def test_more_stages_than_there_may_be_in_repeats_that_are_small(tmp_path: Path) -> None:
    repeats = "\n".join(
        f"  e{n}: {{repeat: {{n: 10000, stages: {{s: {{kind: sft, model: nope, data: x}}}}}}}}"
        for n in range(12)
    )
    spec = tmp_path / "spec.yaml"
    spec.write_text(f"agentc: 1\nname: demo\nstages:\n{repeats}\n")
    found = compile_spec(spec, {}, load_backends())
    messages = [each.message for each in found.diagnostics]
    assert "repeat `e10` gives more than 100000 stages" in messages
    assert not any("matrix" in message for message in messages)
