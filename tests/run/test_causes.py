"""What people are told of runs that went wrong: the cause, by whichever command they ask."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.backend_api import load_backends
from agentc.cli import main
from agentc.compilation import compile_spec
from agentc.cost.estimate import estimate_plan
from agentc.plan.render import plan_document
from agentc.plan.work import find_work, object_of
from agentc.run import drive, orchestrate
from agentc.run.active_runs import ActiveRun, claim_plan_folder
from agentc.run.observe import Observer
from agentc.run.orchestrate import RunOptions, run_plan
from agentc.run.outcome import describe_failures, health
from agentc.run.record import Record
from agentc.run.snakemake_process import DriverOptions
from agentc.run.text_view import sentence
from agentc.runtime.software.job_software import ensure_software
from agentc.runtime.store import file_system, staging
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder

SPEC = Path(__file__).parents[2] / "specs" / "quickstart.yaml"


def tell_status(plan: TinyPlan, job: str, state: str, message: str = "") -> None:
    staging = plan.staging(job)
    (staging / "logs").mkdir(parents=True, exist_ok=True)
    value = {"state": state, "time": time.time(), "message": message, "host": "elsewhere", "pid": 1}
    (staging / "status.json").write_text(json.dumps(value))


def opened(plan: TinyPlan) -> Record:
    """The record of a run of the plan that has begun."""
    layout = StoreLayout(plan.store)
    record = Record(RunFolder.of(layout, "tiny"), find_work(plan.document(), layout), time.time())
    record.open(json.dumps(plan.document()), plan.folder)
    return record


@pytest.fixture
def chain(plan: TinyPlan) -> TinyPlan:
    plan.job("base")
    plan.job("next", kind="pair", inputs={"x": ["base"]})
    plan.store.mkdir(exist_ok=True)
    return plan


def test_status_after_a_failure_has_the_cause(
    chain: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    record = opened(chain)
    tell_status(chain, "base", "failed", "its program exited with 1")
    log = chain.staging("base") / "logs" / "log.txt"
    log.write_text("epoch 1\nValueError: the seed is too large\n\n")
    record.close(143, ["base"])
    assert main(["status", "--store", str(chain.store)]) == 3
    shown = capsys.readouterr().out
    assert "failed: its program exited with 1" in shown
    assert "| ValueError: the seed is too large" in shown
    assert f"log: {log}" in shown
    assert "next  not started" in shown
    assert "with exit code 143: stopped by SIGTERM" in shown
    assert main(["why", "base", "--store", str(chain.store)]) == 0
    shown = capsys.readouterr().out
    assert f"the last attempt failed: its program exited with 1\n  log: {log}\n" in shown


def test_words_of_an_earlier_attempt_are_no_cause(
    chain: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job's log is appended over attempts, and the last one may fail before its program says
    anything: the port of an earlier attempt's server is not where this one was refused."""
    record = opened(chain)
    tell_status(chain, "base", "failed", "the policy server (serve.vllm) was killed by signal 9")
    log = chain.staging("base") / "logs" / "log.txt"
    log.write_text("ConnectError: nobody answers at port 38731\n")
    status = log.parents[1] / "status.json"
    told = json.loads(status.read_text())
    status.write_text(json.dumps({**told, "log_begins": log.stat().st_size}))
    record.close(143, ["base"])
    assert main(["status", "--store", str(chain.store)]) == 3
    shown = capsys.readouterr().out
    layout = StoreLayout(chain.store)
    seen = Observer(layout, chain.jobs, 0.0).observe()
    shown += describe_failures(layout, chain.jobs, seen, chain.folder / "none.log")
    assert "killed by signal 9" in shown
    assert "38731" not in shown
    with log.open("a") as out:
        out.write("ConnectError: nobody answers at port 40001\n")
    assert "40001" in describe_failures(layout, chain.jobs, seen, chain.folder / "none.log")


def test_while_servers_start_their_logs_are_named(chain: TinyPlan) -> None:
    tell_status(chain, "base", "leases", "policy: /store/logs/policy.log")
    (seen, _) = Observer(StoreLayout(chain.store), chain.jobs, 0.0).observe()
    assert sentence(replace(seen, state="leases")) == (
        "starting servers (policy: /store/logs/policy.log)"
    )


def test_what_somebody_stopped_has_not_failed(
    chain: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    layout, record = StoreLayout(chain.store), opened(chain)
    tell_status(chain, "base", "failed", "interrupted by SIGTERM")
    (chain.staging("base") / "logs" / "log.txt").write_text("epoch 1\n")
    record.close(143, [])
    assert main(["status", "--store", str(chain.store)]) == 0
    shown = capsys.readouterr().out
    assert "base  stopped by SIGTERM; `agentc run` continues" in shown
    assert "epoch 1" not in shown
    seen = Observer(layout, chain.jobs, since=0.0).observe()
    told = describe_failures(layout, chain.jobs, seen, chain.folder / "snakemake.log")
    assert told.startswith("base was stopped by SIGTERM; `agentc run` continues\n  log: ")
    assert (
        "agentc did not stop it: its queue did, an administrator, or a user who may signal" in told
    )


def test_status_has_what_a_program_warns_of(
    chain: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(chain)
    tell_status(chain, "base", "running")
    progress = {"done": 1, "total": 2, "unit": "rows", "time": time.time(), "warnings": ["slow"]}
    (chain.staging("base") / "progress.json").write_text(json.dumps(progress))
    assert main(["status", "--store", str(chain.store)]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[lines.index("warning: slow") - 1].startswith("base  running, 1/2 rows")
    assert main(["status", "--store", str(chain.store), "--json"]) == 0
    told = [json.loads(line)["warnings"] for line in capsys.readouterr().out.splitlines()]
    assert told == [["slow"], []]


OVERFLOWED = {
    "episodes": 20, "ends": {"overflow": 20}, "successes": 0, "reward_least": 0.0,
    "reward_most": 0.0,
}  # fmt: skip
IDENTICAL = {"rows": 8, "steps": 4, "identical": 8, "unchanged": True}


def test_status_and_the_end_of_a_run_say_what_was_not_learned(
    chain: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(chain)
    layout = StoreLayout(chain.store)
    facts = {"base": OVERFLOWED, "child": IDENTICAL}
    for job, found in zip(chain.jobs, facts.values(), strict=True):
        manifest = layout.manifest(object_of(job))
        (manifest.parent / "data").mkdir(parents=True)
        manifest.write_text(json.dumps({"kind": job["kind"], "facts": found}), encoding="utf-8")
    assert main(["status", "--store", str(chain.store)]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    told = [line.removeprefix("health: ") for line in lines if line.startswith("health: ")]
    whats = [line.split(";")[0] for line in told]
    assert whats == [
        "20 of 20 episodes (100%) end by overflow: the prompt fills the context",
        "rewards have no variance: 0 in all of 20 episodes",
        "the policy is equal to its start: no weight changed in 4 steps",
        "identical pairs: both sides of 8 of 8 pairs are the same tokens",
    ]
    assert main(["status", "--store", str(chain.store), "--json"]) == 0
    listed = [json.loads(line)["health"] for line in capsys.readouterr().out.splitlines()]
    assert [*listed[0], *listed[1]] == told
    # The gravest first, whatever the order of the jobs.
    ended = health({"jobs": chain.jobs}, layout, "`agentc status` shows them")
    first, second = (str(job["id"]) for job in chain.jobs)
    assert [line.split(":")[0] for line in ended] == [second, second, first, first]
    assert [line.partition(": ")[2] for line in ended] == [told[2], told[3], told[0], told[1]]


def test_the_end_of_a_run_folds_cells_and_all_of_a_smoke_run(tmp_path: Path) -> None:
    plan = TinyPlan(tmp_path)
    layout = StoreLayout(plan.store)
    for seed, episodes in ((0, 20), (1, 30)):
        job = plan.job(f"play@seed={seed}", seed=seed)
        manifest = layout.manifest(object_of(job))
        (manifest.parent / "data").mkdir(parents=True)
        facts = {"episodes": episodes, "ends": {"limit": episodes}}
        manifest.write_text(json.dumps({"kind": "rollout", "facts": facts}), encoding="utf-8")
    assert health({"jobs": plan.jobs}, layout, "more") == [
        "play@*: 20 of 20 episodes (100%) end at the limit of their turns; "
        "look at the episodes in the report; raise max_turns (also in 1 other cell)"
    ]
    smoke = {"jobs": plan.jobs, "experiment": {"scale": "smoke"}}
    assert health(smoke, layout, "see `agentc status`") == ["2 findings: see `agentc status`"]


def test_a_failure_that_another_run_tries_again_is_told(chain: TinyPlan, tmp_path: Path) -> None:
    """The other run's wrapper waits for the claim, and has it the moment ours has failed."""
    layout = StoreLayout(chain.store)
    observer = Observer(layout, chain.jobs, since=0.0)
    tell_status(chain, "base", "failed", "its program exited with 1")
    observer.observe()
    tell_status(chain, "base", "running")
    observer.observe()
    log = tmp_path / "snakemake.log"
    log.write_text("")
    told = describe_failures(layout, chain.jobs, observer.failures(), log)
    assert "base failed: its program exited with 1" in told
    # It went by between two looks: our own Snakemake's log has it.
    log.write_text("agentc: job base failed: its program exited with 1\n  | more\nShutting down\n")
    told = describe_failures(layout, chain.jobs, (), log)
    assert told.startswith("base failed: its program exited with 1 (another run tries it again)")
    assert "log.txt" in told


def test_a_full_disk_is_told_first(chain: TinyPlan, tmp_path: Path) -> None:
    tell_status(chain, "base", "failed", "killed: its wrapper was killed")
    full = "cannot write: no space is left on its file system (ENOSPC; 0 B free)"
    tell_status(chain, "next", "failed", full)
    layout = StoreLayout(chain.store)
    seen = Observer(layout, chain.jobs, since=0.0).observe()
    told = describe_failures(layout, chain.jobs, seen, tmp_path / "none.log")
    assert told.startswith("next failed: cannot write: no space is left")


def test_a_store_that_fails_is_no_bug(
    chain: TinyPlan, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """EIO of everything that the run looks at, in the middle of it, as when a disk goes."""
    layout = StoreLayout(chain.store)
    chain.write_compiled()

    def fail(*words: object) -> int:
        tell_status(chain, "base", "failed", "its program exited with 1")
        observer = words[3]
        assert isinstance(observer, Observer)
        observer.observe()

        def broken(self: StoreLayout, name: str) -> bool:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(layout.object(name)))

        monkeypatch.setattr(StoreLayout, "is_published", broken)
        layout.is_published("x")
        return 0

    monkeypatch.setattr(orchestrate, "drive", fail)
    monkeypatch.setattr(orchestrate, "_build_software", lambda *words: None)
    code = run_plan(
        find_work(chain.document(), layout),
        chain.folder,
        RunOptions(driver=DriverOptions(jobs=1), plain=True),
    )
    said = capsys.readouterr().err
    assert code == 4
    assert "the file server or the disk failed (EIO" in said
    assert "base failed: its program exited with 1" in said


def test_a_store_that_fails_is_told_once(
    chain: TinyPlan, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where history and log lie on the same disk, there is no more to say."""
    layout = StoreLayout(chain.store)
    chain.write_compiled()
    history = RunFolder.of(layout, "tiny").history

    def fail(*words: object) -> int:
        history.mkdir()  # nothing can be written to it
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(layout.root))

    monkeypatch.setattr(orchestrate, "drive", fail)
    monkeypatch.setattr(orchestrate, "_build_software", lambda *words: None)
    options = RunOptions(driver=DriverOptions(jobs=1), plain=True)
    assert run_plan(find_work(chain.document(), layout), chain.folder, options) == 4
    said = capsys.readouterr().err
    (line,) = said.splitlines()
    assert "the file server or the disk failed (EIO" in line


@pytest.mark.parametrize(("number", "code"), [(errno.EIO, 4), (errno.ENOSPC, 3)])
def test_a_job_that_fails_because_the_store_does(
    chain: TinyPlan,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    code: int,
) -> None:
    """The kernel still has what was read, and its status could not be written."""
    layout = StoreLayout(chain.store)
    chain.write_compiled()
    opened = os.open

    def broken(path: str, *words: int) -> int:
        if str(path).startswith(f"{layout.root}/.probe"):
            raise OSError(number, os.strerror(number), path)
        return opened(path, *words)

    monkeypatch.setattr(orchestrate, "_build_software", lambda *words: None)
    monkeypatch.setattr(orchestrate, "drive", lambda *words: 3)
    monkeypatch.setattr(os, "open", broken)
    options = RunOptions(driver=DriverOptions(jobs=1), plain=True)
    assert run_plan(find_work(chain.document(), layout), chain.folder, options) == code
    told = "cannot write results to" in capsys.readouterr().err.strip().splitlines()[0]
    assert told == (number == errno.EIO)


@pytest.mark.parametrize("built", [False, True], ids=["builder", "Snakemake"])
def test_a_python_of_agentc_that_may_not_be_executed_is_named(
    chain: TinyPlan,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    built: bool,
) -> None:
    """Another user can start agentc at most with a Python of its own, and no process by that."""
    layout = StoreLayout(chain.store)
    chain.write_compiled()
    if built:
        lock = (chain.folder / chain.stacks["empty"]["file"]).read_text()
        ensure_software(layout, chain.stacks["empty"]["lock"], lock)
    else:
        monkeypatch.setenv("AGENTC_SOFTWARE", str(tmp_path / "none"))
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o644)
    monkeypatch.setattr(sys, "executable", str(python))
    options = RunOptions(driver=DriverOptions(jobs=1), plain=True)
    assert run_plan(find_work(chain.document(), layout), chain.folder, options) == 3
    said = capsys.readouterr().err
    assert f"the interpreter {python} cannot be started: " in said
    assert f"may not execute {python} ({python} is -rw-r--r-- " in said
    assert "set agentc up with a Python that each of its users may execute" in said
    assert RunFolder.of(layout, "tiny").history.exists()


def test_two_runs_of_a_plan_have_logs_of_their_own(
    chain: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = StoreLayout(chain.store)
    chain.write_compiled()
    logs: list[Path] = []
    monkeypatch.setattr(orchestrate, "_build_software", lambda *words: None)
    options = RunOptions(driver=DriverOptions(jobs=1), plain=True)

    def drive_both(*words: object) -> int:
        log = next(word for word in words if isinstance(word, Path) and word.suffix == ".log")
        logs.append(log)
        if len(logs) == 1:
            run_plan(find_work(chain.document(), layout), chain.folder, options)
        return 3

    monkeypatch.setattr(orchestrate, "drive", drive_both)
    run_plan(find_work(chain.document(), layout), chain.folder, options)
    assert [log.name == drive.DRIVER_LOG for log in logs] == [True, False]


def test_a_clock_that_is_ahead_does_not_take_a_live_run_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    run = ActiveRun(
        name="x", token="x", host="elsewhere", pid=1, began=0.0, queue=None, path=path, uid=0
    )  # fmt: skip
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 120.0)
    assert run.is_alive()
    os.utime(path, (now - 120, now - 120))
    assert not run.is_alive()


def test_plans_never_share_a_folder_where_nodes_share_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some mounts keep flock within a node: two nodes would both be given `plans/exp`."""
    monkeypatch.setenv(file_system.VISIBLE_VARIABLE, "1")
    layout = StoreLayout(tmp_path / "store")
    with claim_plan_folder(layout, "exp", "one") as first:
        assert first.name.startswith("exp-")


def test_the_first_object_of_a_kind_has_its_folder_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(staging, "_sync_directory", synced.append)
    staging._make_folder(tmp_path / "objects" / "sft")
    assert synced == [tmp_path, tmp_path / "objects"]
    staging._make_folder(tmp_path / "objects" / "sft")
    assert len(synced) == 2


def test_the_estimate_is_of_what_until_asks_for(tmp_path: Path) -> None:
    compiled = compile_spec(SPEC, {}, load_backends())
    assert compiled.plan is not None
    document = plan_document(compiled.plan)
    layout = StoreLayout(tmp_path)
    work = find_work(document, layout, "expert")
    found = estimate_plan(document, layout, states=work.states)
    assert {name for name, each in found.items() if each.state == "run"} == {"expert"}
    whole = estimate_plan(document, layout)
    assert all(each.state == "run" for each in whole.values())


READERS = (
    ("plan", "SPEC"), ("plan", "--cost", "SPEC"), ("graph", "SPEC"), ("why", "SPEC", "sft"),
    ("plan", "--preflight", "SPEC", "--offline"), ("status",), ("report",), ("report", "--claims"),
    ("status", "--all-runs"), ("report", "--claims", "SPEC"), ("why", "--full", "sft"),
    ("store", "ls"), ("store", "gc"), ("cancel",),
    ("diff", "a", "b"), ("software", "ls"), ("run", "SPEC"),
)  # fmt: skip


@pytest.mark.parametrize("words", READERS, ids=lambda words: "-".join(words))
@pytest.mark.parametrize("what", ["name too long", "a file"])
def test_a_store_that_cannot_be_read_is_no_bug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], what: str
) -> None:
    store = tmp_path / ("s" * 300 if what == "name too long" else "file")
    if what == "a file":
        store.write_text("")
    named = [str(SPEC) if word == "SPEC" else word for word in words]
    if "--preflight" in words and what == "a file":
        assert main([*named, "--store", str(store)]) == 7, "it is what preflight looks for"
        return
    assert main([*named, "--store", str(store)]) == 4
    said = capsys.readouterr().err
    assert "bug" not in said
    assert ("is no folder" if what == "a file" else "too long") in said
    assert "free" not in said


@pytest.mark.parametrize(
    ("logs", "same"),
    [
        (
            (
                "12:00:01 loading\nValueError: too large\n",
                "12:00:09 loading\nValueError: too large\n",
            ),
            True,
        ),
        (("base: step 1\nKeyError: 'x'\n", "next: step 1\nKeyError: 'x'\n"), True),
        (("OSError: adapter without a base\n", "UnpicklingError: a pickle\n"), False),
        (("OSError: 1 GB\n" + "at exit\n" * 5, "KeyError: 'x'\n" + "at exit\n" * 5), False),
        (("no such file a.bin\n", "no such file b.bin\n"), False),
        (("", ""), True),
    ],
)
def test_the_same_reason_is_only_claimed_where_message_and_log_agree(
    logs: tuple[str, str], same: bool, chain: TinyPlan, tmp_path: Path
) -> None:
    for name, text in zip(("base", "next"), logs, strict=True):
        tell_status(chain, name, "failed", "its program exited with 1")
        (chain.staging(name) / "logs" / "log.txt").write_text(text)
    layout = StoreLayout(chain.store)
    seen = Observer(layout, chain.jobs, since=0.0).observe()
    told = describe_failures(layout, chain.jobs, seen, tmp_path / "none.log")
    assert ("next failed for the same reason as base" in told) is same
    if not same:
        assert f"| {logs[1].splitlines()[0]}" in told
