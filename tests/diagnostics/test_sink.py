"""The sink: what rounds and cells repeat is said once, with how often."""

from __future__ import annotations

from agentc.diagnostics import Sink
from agentc.diagnostics.diagnostic import Source, Span

HERE = Span(Source("spec.yaml", "a: 1\n"), 1, 1, 1, 2)
THERE = Span(Source("spec.yaml", "a: 1\n"), 1, 4, 1, 5)


def test_rounds_and_cells_of_one_place_are_one_message() -> None:
    sink = Sink()
    for number in range(1, 4):
        for seed in range(2):
            sink.warning("AGC629", f"`eto.{number}.dpo@seed={seed}` is too long", HERE)
    (found,) = sink.sorted()
    assert found.message == "`eto.1.dpo@seed=0` is too long"
    assert found.notes == ("the same is true of 5 other stages made from this",)


def test_other_places_and_other_messages_stay_apart() -> None:
    sink = Sink()
    sink.error("AGC202", "stage `sft` needs `lr`", HERE)
    sink.error("AGC202", "stage `sft` needs `global_batch`", HERE)
    sink.error("AGC202", "stage `sft` needs `lr`", THERE)
    sink.error("AGC202", "stage `sft` needs `lr`", HERE)
    assert [found.notes for found in sink.sorted()] == [(), (), ()]


def test_a_doubt_about_one_line_for_several_stages_is_one_message() -> None:
    sink = Sink()
    for name in ("sft", "dpo", "evaluate:rollout"):
        sink.warning("AGC626", f"`{name}` requests 300 MiB", HERE, fix="ask for more")
    sink.warning("AGC626", "`sft` requests 300 MiB", THERE, fix="ask for more")
    sink.warning("AGC626", "`big` requests 300 MiB", HERE, fix="ask for much more")
    first, big, there = sink.sorted()
    assert first.message == "`big` requests 300 MiB"
    assert first.notes == ()
    assert big.notes == ("the same is true of 2 other stages made from this",)
    assert there.span == THERE


def test_errors_of_several_stages_stay_apart() -> None:
    sink = Sink()
    sink.error("AGC601", "`sft` does not fit", HERE)
    sink.error("AGC601", "`dpo` does not fit", HERE)
    assert len(sink.sorted()) == 2


def test_numbers_of_settings_are_no_rounds() -> None:
    sink = Sink()
    sink.error("AGC205", "`warmup_ratio` cannot be `0.5`", HERE)
    sink.error("AGC205", "`warmup_ratio` cannot be `1.5`", HERE)
    assert len(sink.sorted()) == 2
