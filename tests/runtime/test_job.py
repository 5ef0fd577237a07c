"""The wrapper around one job: publishing, skipping, failing, retrying, resuming."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan, processes_of

from agentc.run.observe import Observer
from agentc.run.text_view import sentence
from agentc.runtime.store.layout import StoreLayout


def test_publishes_whole_object_and_clears_staging(plan: TinyPlan) -> None:
    plan.job("collect", rows=2, say="hello")
    assert plan.run("collect").returncode == 0
    manifest = plan.manifest("collect")
    folder = plan.store / "objects" / plan.object("collect")
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert set(manifest["files"]) == {"data/trajectories.jsonl", "logs/log.txt"}
    assert (folder / "logs" / "log.txt").read_text() == "hello\n"
    assert manifest["facts"] == {"rows": 2, "trained_tokens": 1}
    assert manifest["wall_s"] > 0
    assert manifest["max_rss_mb"] > 1
    assert sorted(path.name for path in folder.iterdir()) == ["artifact.json", "data", "logs"]
    assert not plan.staging("collect").exists()


def test_existing_object_is_left_alone(plan: TinyPlan) -> None:
    plan.job("collect")
    plan.run("collect")
    path = plan.store / "objects" / plan.object("collect") / "artifact.json"
    before = path.stat()
    assert plan.run("collect").returncode == 0
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_publishes_onto_the_empty_folder_that_snakemake_makes(plan: TinyPlan) -> None:
    plan.job("collect")
    (plan.store / "objects" / plan.object("collect")).mkdir(parents=True)
    assert plan.run("collect").returncode == 0
    assert plan.published("collect")


def test_folder_without_manifest_is_replaced(plan: TinyPlan) -> None:
    plan.job("collect")
    torn = plan.store / "objects" / plan.object("collect")
    (torn / "data").mkdir(parents=True)
    (torn / "data" / "half").write_text("x")
    assert plan.run("collect").returncode == 0
    assert not (torn / "data" / "half").exists()


def test_failure_publishes_nothing_and_shows_the_end_of_the_log(plan: TinyPlan) -> None:
    plan.job("collect", rows=1, exit=3, say="line one")
    done = plan.run("collect")
    assert done.returncode == 1
    assert not plan.published("collect")
    assert "exited with 3" in done.stderr
    assert "| about to fail" in done.stderr
    assert str(plan.staging("collect") / "logs" / "log.txt") in done.stderr
    assert "Traceback" not in done.stderr
    assert plan.status("collect")["state"] == "failed"


def test_exit_75_is_tried_three_times(plan: TinyPlan) -> None:
    plan.job("twice", rows=1, fail_times=2)
    assert plan.run("twice").returncode == 0
    manifest = plan.manifest("twice")
    assert manifest["attempts"] == 3
    asked = "the program asked for another attempt (exit 75)"
    assert [attempt["because"] for attempt in manifest["earlier_attempts"]] == [asked] * 2
    (seen,) = Observer(StoreLayout(plan.store), plan.jobs, since=0.0).observe()
    assert sentence(seen).endswith(f" (earlier attempts: {asked}; {asked})")


def test_manifest_tells_why_earlier_attempts_came_to_nothing(plan: TinyPlan) -> None:
    job = plan.job("collect", rows=2, exit=3)
    plan.run("collect")
    job["config"].update(exit=0, delay=30)
    process = plan.start("collect")
    wait_for(lambda: plan.status("collect").get("state") == "running")
    (plan.staging("collect") / "work" / "rows.jsonl").unlink()
    process.terminate()
    process.communicate()
    process = plan.start("collect")
    wait_for(lambda: plan.status("collect").get("attempts") == 3)
    process.kill()
    process.communicate()
    wait_for(lambda: not processes_of(plan.store))
    job["config"]["delay"] = 0
    assert plan.run("collect").returncode == 0
    manifest = plan.manifest("collect")
    assert [attempt["because"] for attempt in manifest["earlier_attempts"]] == [
        "its program exited with 3",
        "interrupted by SIGTERM",
        "it was cut off: its wrapper was killed, or its node was lost",
    ]
    assert {attempt["host"] for attempt in manifest["earlier_attempts"]} == {os.uname().nodename}
    assert "attempts.jsonl" not in str(manifest["files"])


def test_exit_75_is_not_tried_for_ever(plan: TinyPlan) -> None:
    plan.job("always", rows=1, fail_times=9)
    done = plan.run("always")
    assert done.returncode == 1
    assert "asked for another attempt 3 times" in done.stderr


def test_rerun_continues_from_the_work_folder(plan: TinyPlan) -> None:
    plan.job("collect", rows=40, hold_after=5)
    process = plan.start("collect")
    kept = plan.staging("collect") / "work" / "rows.jsonl"
    wait_for(lambda: kept.exists() and len(kept.read_text().splitlines()) >= 5)
    process.kill()
    process.communicate()
    before = kept.read_text().splitlines()
    assert plan.run("collect").returncode == 0
    data = plan.store / "objects" / plan.object("collect") / "data" / "trajectories.jsonl"
    rows = data.read_text().splitlines()
    assert rows[: len(before)] == before
    assert len(rows) == 40
    assert plan.manifest("collect")["attempts"] == 2


def test_data_is_emptied_before_an_attempt_unless_the_job_resumes(plan: TinyPlan) -> None:
    for name, resume in (("fresh", False), ("resumed", True)):
        plan.job(name, rows=1, exit=1, resume=resume)
        plan.run(name)
        (plan.staging(name) / "data" / "left").write_text("x")
        plan.jobs[-1]["config"]["exit"] = 0  # the key stays: the same job, now healthy
        assert plan.run(name).returncode == 0
        folder = plan.store / "objects" / plan.object(name) / "data"
        assert (folder / "left").exists() is resume


def test_program_sees_a_small_environment(plan: TinyPlan) -> None:
    plan.job(
        "collect",
        rows=1,
        resources={"cpus": 3},
        echo=["SOME_VARIABLE", "OMP_NUM_THREADS", "HF_HUB_OFFLINE", "PYTHONPATH", "HOME"],
    )
    plan.run("collect", SOME_VARIABLE="leaks", HOME="/somewhere")
    log = plan.store / "objects" / plan.object("collect") / "logs" / "log.txt"
    found = dict(line.split(" = ") for line in log.read_text().splitlines() if " = " in line)
    assert found["SOME_VARIABLE"] == "None"
    assert found["OMP_NUM_THREADS"] == "3"
    assert found["HF_HUB_OFFLINE"] == "1"
    assert found["HOME"] == "/somewhere"
    links = sorted(path.name for path in Path(found["PYTHONPATH"]).iterdir() if path.is_symlink())
    assert links == ["agentc", "agentc_backends", "sitecustomize.py"]


def test_network_is_allowed_by_contract_only(plan: TinyPlan) -> None:
    plan.job("fetch", rows=1, echo=["HF_HUB_OFFLINE"], contract={"network": True})
    plan.run("fetch")
    log = plan.store / "objects" / plan.object("fetch") / "logs" / "log.txt"
    assert "HF_HUB_OFFLINE = None" in log.read_text()


def test_secret_reaches_the_program_and_no_file(plan: TinyPlan) -> None:
    canary = "canary-7f3a9c"
    plan.job("ok", rows=1, echo=["API_KEY"])
    plan.job("bad", rows=1, echo=["API_KEY"], exit=1)
    for job in plan.jobs:
        job["secrets"] = {"API_KEY": "MY_KEY"}
    assert plan.run("ok", MY_KEY=canary).returncode == 0
    failed = plan.run("bad", MY_KEY=canary)
    assert canary not in failed.stderr
    assert "API_KEY = [redacted]" in failed.stderr
    for path in [*plan.store.rglob("*"), *plan.folder.rglob("*")]:
        if path.is_file() and not path.is_symlink():
            assert canary.encode() not in path.read_bytes(), path


def test_missing_secret_is_named_before_anything_starts(plan: TinyPlan) -> None:
    plan.job("ok", rows=1)
    plan.jobs[0]["secrets"] = {"API_KEY": "MY_KEY_THAT_IS_UNSET"}
    done = plan.run("ok")
    assert done.returncode == 1
    assert "the secret MY_KEY_THAT_IS_UNSET is not set" in done.stderr
    assert not (plan.staging("ok") / "job.json").exists()


def test_secret_that_no_header_can_hold_is_refused_unseen(plan: TinyPlan) -> None:
    """HTTP clients refuse it, too: late, and with the value in their words."""
    lease = plan.lease(
        port="none", url="http://127.0.0.1:9/v1", software=None, program=[], probe="",
        input=None, secrets={"AGENTC_REMOTE_TOKEN": "MY_KEY"},
    )  # fmt: skip
    plan.job("act", leases=[lease], rows=1)
    done = plan.run("act", MY_KEY="canary-7f3a\r\nX-More: 9c")
    assert done.returncode == 1
    assert "the secret MY_KEY has a line break" in done.stderr
    assert "canary" not in done.stderr
    plan.jobs[0]["leases"] = []
    plan.jobs[0]["secrets"] = {"API_KEY": "MY_KEY"}
    done = plan.run("act", MY_KEY="canary-7f3a\n")
    assert "the secret MY_KEY begins or ends with a line break" in done.stderr
    assert "canary" not in done.stderr
    assert plan.run("act", MY_KEY="-----BEGIN-----\ncanary\n-----END-----\n").returncode == 0


def test_processes_that_outlive_the_program_are_ended(plan: TinyPlan) -> None:
    # The fixture asserts that none is left.
    plan.job("forks", rows=1, children=True)
    assert plan.run("forks").returncode == 0


def test_two_wrappers_of_one_job_compute_once(plan: TinyPlan) -> None:
    plan.job("collect", rows=4, delay=0.2)
    first = plan.start("collect")
    wait_for(lambda: plan.status("collect").get("state") == "running")
    second = plan.start("collect")
    said, _ = second.communicate(timeout=PATIENCE_S)
    assert (first.wait(), second.returncode) == (0, 0)
    assert "another run works on" in said
    assert plan.manifest("collect")["attempts"] == 1
    first.communicate()


def test_job_file_follows_the_contract(plan: TinyPlan) -> None:
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    plan.job("collect", inputs={"model": ["model"]}, exit=1, rows=1)
    plan.run("model")
    plan.run("collect")
    path = plan.staging("collect") / "job.json"
    described = json.loads(path.read_text())
    data = plan.store / "objects" / plan.object("model") / "data"
    assert described["inputs"] == {"model": [str(data)]}
    assert described["input_objects"] == {"model": [plan.object("model")]}
    assert described["out"] == str(plan.staging("collect") / "data")
    assert path.stat().st_mode & 0o077 == 0


def test_missing_input_is_named(plan: TinyPlan) -> None:
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    plan.job("collect", inputs={"model": ["model"]})
    done = plan.run("collect")
    assert done.returncode == 1
    assert f"its input {plan.object('model')} is not in the store" in done.stderr


def test_unknown_job_and_wrong_command_line(plan: TinyPlan) -> None:
    plan.job("collect")
    assert plan.run("nobody").returncode == 1
    assert "no job named 'nobody'" in plan.run("nobody").stderr
    done = subprocess.run(plan.argv("collect")[:-1], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("usage:")


def test_wrong_content_of_the_lock_file_is_refused(plan: TinyPlan) -> None:
    plan.job("collect")
    (plan.folder / "software" / "empty.txt").write_text("# another lock\n")
    done = plan.run("collect", AGENTC_SOFTWARE=str(plan.store / "software"))
    assert done.returncode == 1
    assert "compile the spec again" in done.stderr


def test_module_that_is_missing_names_the_command_that_looks(plan: TinyPlan) -> None:
    """Somebody changed the software stack after it was built."""
    plan.job("rows", run=[sys.executable, "-c", "import torch_that_is_gone"])
    done = plan.run("rows")
    assert done.returncode == 1
    assert "the module torch_that_is_gone is missing in its software stack `empty`" in (done.stderr)
    assert "`agentc software verify empty --imports`" in done.stderr
