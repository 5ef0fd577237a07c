"""A server that asks another server of its job: started second, told where the other is in a file
of its user's alone, with keys that nobody else has."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S
from tiny_plan import TinyPlan

SERVER = Path(__file__).parents[1] / "support" / "programs" / "server.py"
ASK = """\
import json, os, pathlib, runpy, sys, threading, urllib.request
place = pathlib.Path(os.environ["AGENTC_LEASES"])
told = json.loads(place.read_text())
asked = told["simulator"]
def ask(path, body=None):
    headers = {"Authorization": "Bearer " + asked["token"]}
    request = urllib.request.Request(asked["url"] + path, body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status
if asked["token"]:
    assert ask("/v1/models") == 200, "it is ready before anybody who asks it is started"
    for number in range(%(calls)d):
        threading.Timer(0.3 * number, ask, ["/v1/completions", b"{}"]).start()
keys = {n: v for n, v in os.environ.items() if n.startswith("AGENTC_REMOTE")}
seen = {"told": told, "mode": place.stat().st_mode, "keys": keys}
with open(%(seen)r, "a") as out:
    out.write(json.dumps(seen) + "\\n")
runpy.run_path(%(server)r, run_name="__main__")
"""


class AskingPlan:
    """A tiny plan whose environments ask, and what they have seen."""

    def __init__(self, plan: TinyPlan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.seen_file = folder / "seen.jsonl"

    def simulator(self, served: str = "simulator", **fields: Any) -> dict[str, Any]:
        return {**self.plan.lease("policy", input=served, **fields), "role": "simulator"}

    def environment(self, calls: int = 0) -> dict[str, Any]:
        script = self.folder / "asking.py"
        words = {"seen": str(self.seen_file), "server": str(SERVER), "calls": calls}
        script.write_text(ASK % words)
        lease = self.plan.lease("environment", needs=["simulator"])
        lease["program"] = [str(script), *lease["program"][1:]]
        return dict(lease)

    def seen(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.seen_file.read_text().splitlines()]


@pytest.fixture
def asking(plan: TinyPlan, tmp_path: Path) -> AskingPlan:
    """With two published checkpoints to serve."""
    for name in ("model", "other"):
        plan.job(name, "checkpoint.py", kind="sft", produces="Checkpoint", text=name)
        assert plan.run(name).returncode == 0
    return AskingPlan(plan, tmp_path)


def test_what_is_asked_is_ready_first_and_told_to_the_asking_server_alone(
    asking: AskingPlan,
) -> None:
    leases = [asking.environment(), asking.simulator(), asking.plan.lease()]
    asking.plan.job(
        "act", inputs={"model": ["model"], "simulator": ["other"]}, leases=leases,
        run=[sys.executable, "-c", ""], exit=3,
    )  # fmt: skip
    assert asking.plan.run("act").returncode == 1
    (seen,) = asking.seen()
    assert stat.S_IMODE(seen["mode"]) == 0o600
    assert set(seen["told"]) == {"simulator"}
    assert set(seen["told"]["simulator"]) == {"url", "token", "model", "log"}
    assert seen["keys"] == {}
    job = (asking.plan.staging("act") / "job.json").read_text()
    assert set(json.loads(job)["leases"]) == {"policy", "environment"}
    assert seen["told"]["simulator"]["token"] not in job


def test_the_manifest_has_both_and_the_file_of_tokens_is_gone(asking: AskingPlan) -> None:
    leases = [asking.plan.lease(), asking.environment(), asking.simulator()]
    inputs = {"model": ["model"], "simulator": ["other"]}
    asking.plan.job("act", inputs=inputs, leases=leases, rows=1)
    done = asking.plan.run("act")
    assert done.returncode == 0, done.stderr
    manifest = asking.plan.manifest("act")
    assert [one["role"] for one in manifest["leases"]] == ["policy", "environment", "simulator"]
    assert "logs/simulator.log" in manifest["files"]
    (seen,) = asking.seen()
    token = seen["told"]["simulator"]["token"].encode()
    kept = [path for path in asking.plan.store.rglob("*") if path.is_file()]
    assert not [path for path in kept if token in path.read_bytes()]


def test_a_simulator_that_dies_fails_the_job_with_its_last_words(asking: AskingPlan) -> None:
    # The first call is the one token that it has to complete before it counts as ready.
    simulator = asking.simulator(arguments=["--die-after-calls", "2"])
    leases = [asking.plan.lease(), asking.environment(calls=2), simulator]
    asking.plan.job(
        "act", inputs={"model": ["model"], "simulator": ["other"]}, leases=leases,
        call=True, rows=500, delay=0.1,
    )  # fmt: skip
    said, _ = asking.plan.start("act").communicate(timeout=PATIENCE_S)
    assert "the simulator server (serve.tiny) exited with 134" in said
    assert "fell off the bus" in said


def test_each_key_is_where_it_is_used(asking: AskingPlan) -> None:
    """Of a remote policy the program has the key, of a remote simulator the environment."""
    remote: dict[str, Any] = {
        "port": "none", "probe": "", "identity_check": "none", "program": [], "software": None,
        "url": "https://somebody.invalid/v1",
    }  # fmt: skip
    policy = asking.plan.lease(input=None, secrets={"AGENTC_REMOTE_TOKEN": "POLICY_KEY"}, **remote)
    simulator = {
        **asking.plan.lease(input=None, secrets={"AGENTC_REMOTE_TOKEN": "HUMAN_KEY"}, **remote),
        "role": "simulator",
    }
    seen = asking.folder / "program.json"
    tell = (
        "import json, os\n"
        "found = {n: v for n, v in os.environ.items() if n.startswith('AGENTC_REMOTE')}\n"
        f"json.dump(found, open({str(seen)!r}, 'w'))\n"
    )
    leases = [policy, asking.environment(), simulator]
    asking.plan.job("act", leases=leases, run=[sys.executable, "-c", tell], exit=3)
    done = asking.plan.run("act", POLICY_KEY="key-of-the-policy", HUMAN_KEY="key-of-the-human")
    assert "about to fail" in done.stderr, done.stderr
    assert json.loads(seen.read_text()) == {"AGENTC_REMOTE_TOKEN": "key-of-the-policy"}
    (told,) = asking.seen()
    assert told["keys"] == {"AGENTC_REMOTE_TOKEN_SIMULATOR": "key-of-the-human"}
    assert told["told"]["simulator"]["secrets"] == {
        "AGENTC_REMOTE_TOKEN": "AGENTC_REMOTE_TOKEN_SIMULATOR"
    }
    assert told["told"]["simulator"]["token"] == ""


def test_members_of_a_session_whose_simulators_differ_have_worlds_of_their_own(
    asking: AskingPlan,
) -> None:
    for name, served in (("one", "model"), ("two", "other"), ("three", "other")):
        leases = [asking.plan.lease(), asking.environment(), asking.simulator()]
        inputs = {"model": ["model"], "simulator": [served]}
        asking.plan.job(name, inputs=inputs, leases=leases, rows=1, say=name)
    asking.plan.session("all", "one", "two", "three")
    done = asking.plan.run(session="all")
    assert done.returncode == 0, done.stderr
    urls = {one["told"]["simulator"]["url"] for one in asking.seen()}
    assert (len(asking.seen()), len(urls)) == (2, 2)
    roles = [one["role"] for one in asking.plan.manifest("all")["leases"]]
    assert sorted(roles) == ["environment"] * 2 + ["policy"] + ["simulator"] * 2
