"""What a spec of any number of errors may cost, counted in work rather than time."""

from __future__ import annotations

from pathlib import Path

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.diagnostics import Sink
from agentc.diagnostics.suggest import bounded_suggestions, suggestions


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
