"""What a machine was measured to do takes the place of the prior's constants of processors, what
environments say of themselves that of its guesses; others at work on the machine are seen.

The programs themselves are run where their software is built.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S

from agentc.backend_api import BackendTable
from agentc.cli.cost import not_measured
from agentc.compilation import compile_spec
from agentc.cost import hardware, machine_state
from agentc.cost.estimate import estimate_plan
from agentc.cost.hardware import Calibration, calibration_of, cpu_machine, gpu_machine
from agentc.cost.quantities import prior
from agentc.cost.statements import Sounding, read_sounding, to_sound
from agentc.cost.summary import Band, summarise
from agentc.plan.render import plan_document
from agentc.plan.work import find_work
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout
from agentc_backends.environments.server import sounding as sounding_program
from agentc_backends.software import LIGHT, TORCH

MEASURED: dict[str, Any] = {
    "import_s": 3.7,
    "training": {
        "128": {"weights": 656000, "layers": 2, "tokens": 1024, "length": 128,
                "step_s": 0.07, "overhead_s": 0.006},
        "512": {"weights": 8915456, "layers": 2, "tokens": 1024, "length": 128,
                "step_s": 0.67, "overhead_s": 0.037},
    },
    "decoding": {"one_s": 0.0016, "many_s": 0.0036},
    "interpreter_s": 0.0017,
}  # fmt: skip
TELLS = {"turns": 3.0, "prompt": 85.0, "reply": 29.0, "observation": 31.0}

GAMES = """\
agentc: 1
name: games
environments: {game: {backend: twenty_questions, objects: subset, splits: together}}
prompts: {react: {instruction: Ask., reply_format: react}}
stages: {expert: {kind: expert, split: all}}
"""


@pytest.fixture(scope="module")
def quickstart(planned: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return planned("quickstart")


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory, table: BackendTable) -> dict[str, Any]:
    """The plan of an expert in an environment that states nothing of its episodes."""
    spec = tmp_path_factory.mktemp("games") / "games.yaml"
    spec.write_text(GAMES)
    compiled = compile_spec(spec, {}, table)
    assert compiled.plan is not None, compiled.diagnostics
    return plan_document(compiled.plan)


def slower(times: float) -> Calibration:
    """A machine that takes so many times longer for everything."""

    def scaled(value: Any, name: str = "") -> Any:
        if isinstance(value, Mapping):
            return {each: scaled(inner, each) for each, inner in value.items()}
        return value * times if name.endswith("_s") else value

    return calibration_of(scaled(MEASURED))


def test_rates_are_those_that_were_measured() -> None:
    found = calibration_of(MEASURED)
    # 6 operations a weight and token, and attention's, of which trainers make seven tenths.
    operations = 6 * 1024 * (656000 + 2 * 128 * 128)
    assert found.rates[128] == pytest.approx(0.7 * operations / 0.064)
    assert found.rate(64) == found.rates[128]
    assert found.rates[128] < found.rate(256) < found.rates[512] == found.rate(4096)
    assert (found.starting, found.decoding, found.interpreting) == pytest.approx((1, 1, 1))


def test_a_slower_machine_takes_longer_in_all(
    quickstart: Mapping[str, Any], table: BackendTable
) -> None:
    here, there = (
        estimate_plan(quickstart, None, table=table, calibration=slower(times)) for times in (1, 3)
    )
    for name in ("sft", "eto.1.dpo", "evaluate_sft:rollout", "base", "expert"):
        ratio = there[name].seconds.median / here[name].seconds.median
        assert 2 < ratio < 3.2, name


def test_the_reference_machine_leaves_the_prior_as_it_is() -> None:
    machine = cpu_machine(2).calibrated(calibration_of(MEASURED))
    for name in ("torch_start", "decode_step", "environment_turn"):
        assert machine.taking(name).median == pytest.approx(prior(name).median)
    gpu = gpu_machine("a100", 1)
    assert gpu.calibrated(slower(3)) == gpu


@pytest.mark.parametrize(
    "wrong", [{}, {**MEASURED, "import_s": 4000.0}, {**MEASURED, "training": {}}, {"training": 3}]
)
def test_what_is_no_measure_teaches_nothing(wrong: Any, tmp_path: Path) -> None:
    store = StoreLayout(tmp_path)
    file = hardware.calibration_file(store, "lock")
    file.parent.mkdir()
    file.write_text(json.dumps({"measured": wrong}))
    assert hardware.read_calibration(store, "lock") is None


def test_it_is_kept_until_machine_or_software_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, began = StoreLayout(tmp_path), list[str]()
    monkeypatch.delenv("AGENTC_ENVIRONMENTS", raising=False)

    def run(*given: Any) -> Any:
        given[-1]()
        return MEASURED

    monkeypatch.setattr(machine_state, "_run", run)
    store.environment("a" * 64).mkdir(parents=True)
    document = {"environments": {"torch": {"lock": "a" * 64}}}
    assert machine_state.machine_measured(document, store, None) is None
    for _ in range(2):
        found = machine_state.machine_measured(document, store, began.append)
        assert found == calibration_of(MEASURED)
    assert len(began) == 1
    assert machine_state.machine_measured(document, store, None) is not None
    file = hardware.calibration_file(store, "a" * 64)
    assert json.loads(file.read_text())["machine"] == hardware.machine_words()
    other = {"environments": {"torch": {"lock": "b" * 64}}}
    assert machine_state.machine_measured(other, store, None) is None
    monkeypatch.setattr(hardware, "machine_words", lambda: {"cpu": "another", "cpus": 64})
    assert machine_state.machine_measured(document, store, None) is None


def test_what_was_tried_in_vain_is_not_tried_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tries = StoreLayout(tmp_path), list[str]()
    monkeypatch.setattr(machine_state, "_run", lambda *given: tries.append(given[2]))
    monkeypatch.delenv("AGENTC_ENVIRONMENTS", raising=False)
    document = {"environments": {"torch": {"lock": "a" * 64}}}
    for _ in range(2):  # its software is not built: nothing was tried
        assert machine_state.machine_measured(document, store, print) is None
    assert len(tries) == 2
    store.environment("a" * 64).mkdir(parents=True)
    for _ in range(2):
        assert machine_state.machine_measured(document, store, print) is None
    assert len(tries) == 3
    file = hardware.calibration_file(store, "a" * 64)
    os.utime(file, (1, 1))
    machine_state.machine_measured(document, store, print)
    assert len(tries) == 4


def test_an_environment_is_asked_what_its_backend_does_not_state(
    games: Mapping[str, Any], table: BackendTable
) -> None:
    [(name, lease)] = to_sound(games, table)
    assert lease["backend"] == "env.twenty_questions"
    told = read_sounding({"tasks": {"all": 10}, "expert": TELLS})
    with_it = estimate_plan(games, None, table=table, sounded={name: told})
    without = estimate_plan(games, None, table=table)
    assert with_it["expert"].disk.median < without["expert"].disk.median
    assert with_it["expert"].disk.spread < without["expert"].disk.spread


def test_the_program_tells_what_an_environment_is_like(tmp_path: Path, games: Any) -> None:
    [lease] = games["jobs"][0]["leases"]
    given, out = tmp_path / "in.json", tmp_path / "out.json"
    given.write_text(json.dumps({"program": lease["program"], "settings": lease["settings"]}))
    assert sounding_program.main([str(given), str(out)]) == 0
    told = read_sounding(json.loads(out.read_text()))
    assert isinstance(told, Sounding)
    assert sum(told.tasks.values()) >= 10
    assert told.expert is not None
    assert 1 < told.expert.turns <= 20
    assert told.expert.prompt > told.expert.observation > 0


def test_it_is_asked_in_its_own_software(
    tmp_path: Path, repository: Path, games: Any, table: BackendTable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shared = Path(os.environ.get("AGENTC_ENVIRONMENTS", repository / ".agentc" / "environments"))
    monkeypatch.setenv("AGENTC_ENVIRONMENTS", str(tmp_path / "none"))
    store = StoreLayout(tmp_path / "store")
    assert machine_state.environments_sounded(games, table, store, print) == {}
    monkeypatch.setenv("AGENTC_ENVIRONMENTS", str(shared))
    lock = games["environments"][LIGHT.name]["lock"]
    if not (store.environment(lock) / "complete.json").exists():
        pytest.skip("the software environment `light` is not built: `make environments`")
    [told] = machine_state.environments_sounded(games, table, store, print).values()
    assert told.expert is not None
    assert [*machine_state.environments_sounded(games, table, store, None).values()] == [told]


@pytest.mark.slow
def test_this_machine_is_measured_in_the_software_of_trainings(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = Path(os.environ.get("AGENTC_ENVIRONMENTS", repository / ".agentc" / "environments"))
    monkeypatch.setenv("AGENTC_ENVIRONMENTS", str(shared))
    store = StoreLayout(tmp_path / "store")
    lock = lock_digest(TORCH.text)
    if not (store.environment(lock) / "complete.json").exists():
        pytest.skip("the software environment `torch` is not built: `make environments`")
    monkeypatch.setattr(machine_state, "_PATIENCE_S", PATIENCE_S)
    document = {"environments": {TORCH.name: {"lock": lock}}}
    found = machine_state.machine_measured(document, store, print)
    assert found is not None
    assert machine_state.machine_measured(document, store, None) == found


def _compute(until: float) -> None:
    while time.monotonic() < until:
        sum(range(1000))


def test_others_at_work_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    assert machine_state.share_of_cores(4) == 1.0
    monkeypatch.setattr(os, "getloadavg", lambda: (99.0, 0.0, 0.0))
    cores = len(os.sched_getaffinity(0))
    others = [
        multiprocessing.get_context("spawn").Process(
            target=_compute, args=(time.monotonic() + 600,)
        )
        for _ in range(3 * cores)
    ]
    for each in others:
        each.start()
    try:
        assert machine_state.share_of_cores(cores) < 0.75
    finally:
        for each in others:
            each.kill()


def test_a_plan_says_what_was_not_looked_at(
    quickstart: Mapping[str, Any], table: BackendTable, tmp_path: Path
) -> None:
    store = StoreLayout(tmp_path)
    work = find_work(quickstart, store)
    summary = summarise(quickstart, estimate_plan(quickstart, None, table=table), 2)
    assert not_measured(work, summary) == "this machine was not measured"
    file = hardware.calibration_file(store, quickstart["environments"]["torch"]["lock"])
    file.parent.mkdir()
    file.write_text(json.dumps({"measured": MEASURED}))
    assert not_measured(work, summary) == "how busy this machine is does not count"
    short = replace(summary, wall=Band(1.0, 2.0, 3.0))
    assert not_measured(work, short) == "", "nor would `cost` look"


def test_a_busy_machine_takes_longer_and_says_so(
    quickstart: Mapping[str, Any], table: BackendTable
) -> None:
    from agentc.cost.render import summary_sentence

    idle = estimate_plan(quickstart, None, table=table)
    busy = machine_state.slowed(idle, 0.25)
    assert busy["sft"].seconds.median == pytest.approx(3.4 * idle["sft"].seconds.median)
    alone = summarise(quickstart, idle, 2)
    slower = replace(summarise(quickstart, busy, 2), share=0.25, alone=240.0)
    assert slower.wall.median == pytest.approx(3.4 * alone.wall.median, rel=0.05)
    end = "; this machine is busy: a run gets about 0.5 of 2 cores now (4.0 min alone)"
    assert summary_sentence(slower).endswith(end)
    assert "busy" not in summary_sentence(alone)


def test_a_busy_machine_has_a_wider_band() -> None:
    alone = Band(low=80.0, median=100.0, high=130.0)
    assert machine_state.widened(alone, 1.0) == alone
    wider = [machine_state.widened(alone, share) for share in (0.7, 0.4, 0.2)]
    for band, next_band in pairwise([alone, *wider]):
        assert next_band.low < band.low
        assert next_band.median == 100.0
        assert next_band.high > band.high
    assert wider[-1].high < 100 / 0.2 * 1.3, "others do not count twice over"
    nothing = Band(low=0.0, median=0.0, high=0.0)
    assert machine_state.widened(nothing, 0.2) == nothing
