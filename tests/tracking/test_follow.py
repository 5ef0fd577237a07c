"""The follower on a recorded run: what is handed to a sink while files grow, are cut back by a
resume, and are published; nothing twice, whatever the order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.tracking.recorded_run import CUT, LABEL, PROJECT, RESUMED, RecordedRun, lines

from agentc.runtime.tracking.follow import RunFollower, Tail, flat_numbers, read_point
from agentc.runtime.tracking.sink import HeldSteps, Names, TrackedRun

Points = dict[str, dict[int, float]]


class Memory:
    """A sink that keeps points by run and metric, and refuses one that it has."""

    def __init__(self) -> None:
        self.points: dict[str, Points] = {}
        self.runs: dict[str, TrackedRun] = {}
        self.words: Mapping[str, str] = {}
        self.finished: list[str] = []

    def open(self, run: TrackedRun) -> HeldSteps:
        self.runs[run.name] = run
        return {name: set(steps) for name, steps in self.points.get(run.name, {}).items()}

    def log(self, run: TrackedRun, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            points = self.points.setdefault(run.name, {}).setdefault(name, {})
            assert step not in points, f"{name} of step {step} came twice"
            points[step] = value

    def send_text(self, run: TrackedRun, title: str, text: str, words: Mapping[str, str]) -> None:
        self.words = words

    def finish(self, run: TrackedRun) -> None:
        self.finished.append(run.name)

    def flush(self) -> None: ...

    def close(self) -> None: ...


class Watched:
    """A recorded run, its sink, and what people were told."""

    def __init__(self, folder: Path) -> None:
        self.run, self.sink = RecordedRun(folder), Memory()
        self.told: list[str] = []
        self.begin()

    def begin(self) -> None:
        """Follow by a process of its own, which knows nothing but what the sink has."""
        names = Names(self.run.document, LABEL, PROJECT)
        self.follower = RunFollower(
            self.run.layout, self.run.document, names, self.sink, self.told.append
        )

    def curve(self, word: str) -> Points:
        (name,) = (name for name in self.sink.points if f"/{word}" in name)
        return self.sink.points[name]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def same(found: Points, expected: Points) -> bool:
    """Equal, and NaN where NaN is expected."""
    return repr({k: dict(sorted(found[k].items())) for k in sorted(found)}) == repr(
        {k: expected[k] for k in sorted(expected)}
    )


@pytest.mark.parametrize("anew", [False, True], ids=["one process", "a process for each look"])
def test_a_resumed_training_is_there_once(watched: Watched, anew: bool) -> None:
    watched.follower.observe()
    assert not watched.sink.points
    watched.run.train_until_cut_off()
    watched.follower.observe()
    assert sorted(watched.curve("sft")["loss"]) == list(range(1, CUT))
    if anew:
        watched.begin()
    watched.run.resume()
    watched.follower.observe()
    watched.run.publish("sft@seed=0")
    watched.follower.observe()
    watched.follower.observe()
    assert same(watched.curve("sft"), watched.run.expected())
    assert math.isnan(watched.curve("sft")["entropy"][3])
    assert watched.sink.finished == [name for name in watched.sink.points if "/sft" in name]
    assert not watched.told


def test_steps_that_come_out_otherwise_after_a_resume_are_told(watched: Watched) -> None:
    watched.run.train_until_cut_off()
    watched.follower.observe()
    watched.run.resume(loss=7.0)
    watched.run.publish("sft@seed=0")
    watched.follower.observe()
    assert same(watched.curve("sft"), watched.run.expected())
    (said,) = watched.told
    assert said.startswith(f"sft@seed=0: {CUT - 1 - RESUMED} steps from {RESUMED + 1} on")


def test_a_finished_run_is_replayed(watched: Watched) -> None:
    watched.run.train_until_cut_off()
    watched.run.resume()
    watched.run.play(4)
    for job in ("sft@seed=0", "online"):
        watched.run.publish(job)
    watched.run.publish_results()
    watched.follower.observe()
    # As the store has it: nobody saw the first attempt.
    assert watched.curve("sft")["tokens_per_s"][RESUMED + 1] == 1.0
    assert len(watched.sink.finished) == len(watched.sink.points) == 3


def test_online_rl_is_followed_by_its_iterations(watched: Watched) -> None:
    for played in (1, 3, 4):
        watched.run.play(played)
        watched.follower.observe()
        assert sorted(watched.curve("online")["return/mean"]) == list(range(played))
    watched.run.publish("online")
    watched.follower.observe()
    expected: Points = {}
    for row in lines("curve.jsonl"):
        for name, value in flat_numbers(row):
            if name != "iteration":
                expected.setdefault(name, {})[row["iteration"]] = value
    assert same(watched.curve("online"), expected)


def test_results_have_intervals_and_verdicts(watched: Watched) -> None:
    watched.run.publish("eto.1.evaluate", {"metrics.json": "metrics.json"})
    watched.follower.observe()
    # Rounds of one stage are a curve; the name of the stage has no round.
    assert list(watched.curve("results")["eto.evaluate/reward"]) == [1]
    watched.run.publish("eto.2.evaluate", {"metrics.json": "metrics.json"})
    watched.run.publish("results", {"comparison.json": "comparison.json"})
    watched.run.publish("claims", {"claims.json": "claims.json"})
    watched.follower.observe()
    points = watched.curve("results")
    mean, low, high = (points[f"eto.evaluate/reward{end}"][2] for end in ("", "_low", "_high"))
    assert low < mean < high
    assert points["evaluate_untrained/reward less evaluate_sft_low"][0] < 0
    assert points["claims/cloning"][0] == pytest.approx(0.235, abs=1e-3)
    assert watched.sink.words["cloning"] == "reproduced"


def test_runs_say_what_they_are_of(watched: Watched) -> None:
    watched.run.train_until_cut_off()
    watched.follower.observe()
    (run,) = watched.sink.runs.values()
    key = watched.run.name("sft@seed=0").partition("/")[2]
    assert run.name == f"quickstart@smoke/sft@seed=0-{key[:6]}"
    assert (run.project, run.group, run.tags) == ("quickstart", LABEL, ("dpo", "smoke"))
    assert run.config["params"] == {"rounds": 2, "seed": 0}
    assert run.config["settings"] == {"lr": 0.1, "lora": {"r": 8}}


def test_a_tail_reads_whole_lines_and_notices_that_some_were_dropped(tmp_path: Path) -> None:
    path, tail = tmp_path / "steps.jsonl", Tail()
    assert tail.read(path) == []
    path.write_bytes(b"one\ntwo\nthr")
    assert tail.read(path) == [b"one\n", b"two\n"]
    path.write_bytes(b"one\ntwo\nthree\n")
    assert tail.read(path) == [b"three\n"]
    path.write_bytes(b"one\n")
    assert tail.read(path) == [b"one\n"]
    path.write_bytes(b"one\nTWO\nthree, longer than before\n")
    assert tail.read(path) == [b"TWO\n", b"three, longer than before\n"]
    path.write_bytes(b"")
    assert tail.read(path) == []


@pytest.mark.parametrize(
    "line", [b'{"step": 3, "los', b"[1, 2]", b'{"loss": 1}', b'{"step": true}']
)
def test_lines_without_a_point_are_passed_over(line: bytes) -> None:
    assert read_point(line) is None
