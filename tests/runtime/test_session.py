"""Sessions: jobs that share one start of a server, each with its own object."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan


@pytest.fixture
def shared(plan: TinyPlan, tmp_path: Path) -> TinyPlan:
    """Two jobs on one server that counts its starts in `starts`."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    assert plan.run("model").returncode == 0
    lease = plan.lease(arguments=["--count", str(tmp_path / "starts")])
    for name in ("left", "right"):
        plan.job(
            name, inputs={"model": ["model"]}, leases=[lease], call=True, rows=5, delay=0.1,
            say=name,
        )  # fmt: skip
    plan.session("both", "left", "right")
    return plan


def test_members_share_one_server_and_run_beside_each_other(
    shared: TinyPlan, tmp_path: Path
) -> None:
    done = shared.run(session="both")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "starts").read_text() == "x"
    left, right = shared.manifest("left"), shared.manifest("right")
    # Started together, each began before the other had ended.
    both = shared.manifest("both")
    for one, other in ((left, right), (right, left)):
        assert one["started"] < other["started"] + other["wall_s"]
    assert both["members"] == {"left": shared.object("left"), "right": shared.object("right")}
    assert set(both["files"]) == {"logs/policy.log"}
    for name, manifest in (("left", left), ("right", right)):
        log = shared.store / "objects" / shared.object(name) / "logs" / "log.txt"
        assert log.read_text() == name + "\n"
        assert [lease["role"] for lease in manifest["leases"]] == ["policy"]


def test_members_that_know_the_model_by_other_names_share_one_server(
    shared: TinyPlan, tmp_path: Path
) -> None:
    """A ranking calls it its reference, rollouts their policy."""
    shared.jobs.pop()
    lease = {**shared.jobs[-1]["leases"][0], "input": "reference"}
    shared.job("ranked", inputs={"reference": ["model"]}, leases=[lease], call=True, rows=2)
    shared.sessions.clear()
    shared.session("both", "left", "ranked")
    done = shared.run(session="both")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "starts").read_text() == "x"


def test_published_member_is_skipped(shared: TinyPlan) -> None:
    assert shared.run("left").returncode == 0
    before = shared.manifest("left")["started"]
    assert shared.run(session="both").returncode == 0
    assert shared.manifest("left")["started"] == before
    assert shared.published("right")


def test_no_server_when_all_members_are_published(shared: TinyPlan, tmp_path: Path) -> None:
    assert shared.run("left").returncode == 0
    assert shared.run("right").returncode == 0
    assert (tmp_path / "starts").read_text() == "xx"
    assert shared.run(session="both").returncode == 0
    assert (tmp_path / "starts").read_text() == "xx"
    assert shared.published("both")


def test_failed_member_does_not_take_the_other_down(shared: TinyPlan) -> None:
    shared.jobs[-2]["config"]["exit"] = 4
    done = shared.run(session="both")
    assert done.returncode == 1
    assert "job left failed: its program exited with 4" in done.stderr
    assert shared.published("right")
    assert not shared.published("left")
    assert not shared.published("both")
    shared.jobs[-2]["config"]["exit"] = 0
    assert shared.run(session="both").returncode == 0


def test_dead_server_fails_all_members(shared: TinyPlan) -> None:
    for job in shared.jobs[1:]:
        job["leases"][0]["program"] += ["--die-after-calls", "4"]
    done = shared.run(session="both")
    assert done.returncode == 1
    assert "exited with 134" in done.stderr
    assert {shared.status(name)["state"] for name in ("left", "right", "both")} == {"failed"}


@pytest.mark.slow
def test_sessions_with_common_members_do_not_block_each_other(shared: TinyPlan) -> None:
    shared.session("reversed", "right", "left")
    first = shared.start(session="both")
    second = shared.start(session="reversed")
    codes = [process.wait(timeout=PATIENCE_S) for process in (first, second)]
    assert codes == [0, 0]
    assert shared.manifest("left")["attempts"] == 1
    assert shared.published("both")
    assert shared.published("reversed")
    for process in (first, second):
        process.communicate()


def test_member_waits_for_its_input_from_another_member(plan: TinyPlan) -> None:
    plan.job("first", rows=2)
    plan.job("second", inputs={"data": ["first"]})
    plan.session("chain", "second", "first")
    assert plan.run(session="chain").returncode == 0
    assert plan.manifest("second")["started"]


def test_single_job_and_session_compute_a_member_once(shared: TinyPlan) -> None:
    single = shared.start("left")
    wait_for(lambda: shared.status("left").get("state") == "running")
    assert shared.run(session="both").returncode == 0
    assert single.wait(timeout=PATIENCE_S) == 0
    assert shared.manifest("left")["attempts"] == 1
    single.communicate()


@pytest.mark.slow
def test_a_member_that_reads_another_waits_for_it(shared: TinyPlan, tmp_path: Path) -> None:
    shared.job(
        "reader", inputs={"model": ["model"], "trees": ["left"]}, leases=shared.jobs[1]["leases"],
        call=True, rows=2, say="reader",
    )  # fmt: skip
    shared.sessions.clear()
    shared.session("all", "left", "right", "reader")
    done = shared.run_all()  # Snakemake too: the session must not wait for itself
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "starts").read_text() == "x"
    log = shared.store / "objects" / shared.object("reader") / "logs" / "log.txt"
    assert log.read_text() == "reader\n"


def test_a_member_that_waits_says_for_what(shared: TinyPlan) -> None:
    shared.jobs[1]["config"]["delay"] = 0.5
    shared.job("reader", inputs={"model": ["model"], "trees": ["left"]}, rows=1)
    shared.sessions.clear()
    shared.session("all", "left", "reader")
    running = shared.start(session="all")
    wait_for(lambda: shared.status("left").get("state") == "running")
    waiting = shared.status("reader")
    assert (waiting["state"], waiting["message"]) == ("waiting", f"for {shared.object('left')}")
    assert running.wait(timeout=PATIENCE_S) == 0
    running.communicate()


def test_a_member_whose_input_fails_is_told_so(shared: TinyPlan) -> None:
    shared.jobs[1]["config"]["exit"] = 4
    shared.job(
        "reader", inputs={"model": ["model"], "trees": ["left"]}, leases=shared.jobs[1]["leases"],
        call=True, rows=2,
    )  # fmt: skip
    shared.sessions.clear()
    shared.session("all", "left", "right", "reader")
    done = shared.run(session="all")
    assert done.returncode == 1
    assert f"its input {shared.object('left')} is not in the store" in done.stderr
    assert shared.published("right")


@pytest.fixture
def two_worlds(plan: TinyPlan, tmp_path: Path) -> TinyPlan:
    """A session of two jobs on environment servers that differ; each finds its port taken three
    times before it can serve."""
    server = Path(__file__).parents[1] / "support" / "programs" / "server.py"
    for name in ("one", "two"):
        count = tmp_path / f"starts.{name}"
        thief = tmp_path / f"{name}.py"
        thief.write_text(
            "import pathlib, runpy, sys\n"
            f"count = pathlib.Path({str(count)!r})\n"
            "with count.open('a') as out: out.write('x')\n"
            "if len(count.read_text()) < 4: sys.exit('[Errno 98] Address already in use')\n"
            f"runpy.run_path({str(server)!r}, run_name='__main__')\n"
        )
        lease = plan.lease("environment", port="held", expect={"name": name})
        identity = ["--identity", json.dumps({"name": name})]
        lease["program"] = [str(thief), *lease["program"][1:], *identity]
        plan.job(name, leases=[lease], rows=1)
    plan.session("both", "one", "two")
    return plan


def test_servers_of_one_role_do_not_meet_in_a_session(two_worlds: TinyPlan) -> None:
    done = two_worlds.run(session="both")
    assert done.returncode == 0, done.stderr
    for name in ("one", "two"):
        (described,) = two_worlds.manifest(name)["leases"]
        assert (described["role"], described["served"]) == ("environment", {"name": name})
    first, second = two_worlds.manifest("both")["leases"]
    assert "name" not in first
    assert re.fullmatch(r"environment-[0-9a-f]{8}", second["name"])
    logs = {"logs/environment.log", f"logs/{second['name']}.log"}
    assert set(two_worlds.manifest("both")["files"]) == logs


def test_servers_of_one_role_that_write_ready_files_do_not_meet(plan: TinyPlan) -> None:
    for name in ("one", "two"):
        identity = ["--identity", json.dumps({"name": name})]
        plan.job(
            name, leases=[plan.lease("environment", arguments=identity, expect={"name": name})]
        )
    plan.session("both", "one", "two")
    done = plan.run(session="both")
    assert done.returncode == 0, done.stderr


def test_each_remote_endpoint_has_its_own_key(plan: TinyPlan, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    tell = (
        "import json, os\n"
        "found = {n: v for n, v in os.environ.items() if n.startswith('AGENTC_REMOTE')}\n"
        f"json.dump(found, open({str(seen)!r}, 'w'))\n"
    )
    leases = [
        plan.lease(
            role, port="none", url=f"https://{role}.invalid/v1", probe="", identity_check="none",
            program=[], software=None, input=None,
            secrets={"AGENTC_REMOTE_TOKEN": role.upper() + "_KEY"},
        )
        for role in ("policy", "judge")
    ]  # fmt: skip
    plan.job("act", leases=leases, run=[sys.executable, "-c", tell], exit=3)
    done = plan.run("act", POLICY_KEY="key-of-the-policy", JUDGE_KEY="key-of-the-judge")
    assert "about to fail" in done.stderr
    told = json.loads((plan.staging("act") / "job.json").read_text())["leases"]
    variables = {role: told[role]["secrets"]["AGENTC_REMOTE_TOKEN"] for role in told}
    found = json.loads(seen.read_text())
    assert {role: found.pop(name) for role, name in variables.items()} == {
        "policy": "key-of-the-policy",
        "judge": "key-of-the-judge",
    }
    assert found == {}
