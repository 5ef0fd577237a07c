"""The job that lets a program play, against a TextCraft server and a scripted model server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.backends.conftest import leases
from tests.backends.recorded.cut_streams import cut_once_beside
from tests.backends.rollout.test_job_rollout import CONFIG
from tests.support.patience import wait_for

from agentc.runtime.contracts.artifacts import check_artifact
from agentc.runtime.machine.process import started

REACT = "agentc_backends.agents.rollout.job_rollout"
COMMAND = "agentc_backends.agents.command.job_command"
CRAFTER = (Path(__file__).parent / "crafter.py").read_text()
RULES = [
    {
        "match": r"(craft \d+ stick using [^\n]*)",
        "reply": [
            "Thought: é\nAction: get 2 oak planks",
            r"Thought: now\nAction: \1",
            "well, well",
        ],
    },
    {
        "reply": [
            "Action: inventory\nObservation: nothing",
            "Action: get 1 oak log",
            "hm, é <script>",
            "Action: fly",
        ]
    },
]
OWN = {
    name: CONFIG[name]
    for name in (
        "on_invalid",
        "invalid_message",
        "action_span",
        "action_space",
        "no_action",
        "invalid_reward",
    )
}
"""What `rollout.react` alone is told: a program reads its replies itself."""
SHARED: dict[str, Any] = {
    **{name: value for name, value in CONFIG.items() if name not in OWN},
    "limit": 4,
    "max_turns": 5,
}
PLACEMENT = {"concurrency": 3, "error_budget": 0.0, "episode_s": 120.0}


def command(fault: str = "", **changed: Any) -> dict[str, Any]:
    program = {
        "words": [],
        "python": True,
        "files": [{"path": "agents/crafter.py", "text": CRAFTER}],
        "params": {"fault": fault} if fault else {},
        "tells": True,
        "keeps_all": False,
    }
    return {**SHARED, **program, **changed}


@pytest.fixture
def served(share: Any, environment: Any) -> dict[str, Any]:
    words = ["-m", "agentc_backends.servers.scripted.job_serve", "--port", "0", "--ready-file",
             "READY", "--rules", json.dumps(RULES)]  # fmt: skip
    policy = share("policy", words, "policy-token", model="policy", log="policy.log")
    return leases(policy, environment)


@pytest.mark.parametrize("stop", [[], ["\nObservation"]])
def test_rows_equal_those_of_the_native_rollout(
    run_job: Any, served: dict[str, Any], tmp_path: Path, stop: list[str]
) -> None:
    decode = {**SHARED["decode"], "stop": stop}
    react = run_job(
        REACT,
        {**SHARED, **OWN, "decode": decode},
        placement=PLACEMENT,
        leases=served,
        staging=tmp_path / "react",
    )
    assert react.code == 0, react.output
    done = run_job(COMMAND, command(decode=decode), placement=PLACEMENT, leases=served)
    assert done.code == 0, done.output
    check_artifact("Trajectories", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    name = "trajectories.jsonl"
    assert (done.data / name).read_bytes() == (react.data / name).read_bytes()
    rows = done.rows(name)
    assert len(rows) == 8
    # What would make the comparison an empty one.
    assert 0 < sum(row["invalid"] for row in rows) < sum(row["turns"] for row in rows)
    assert len({json.dumps(row["messages"]) for row in rows}) == 8
    texts = [message["content"] for row in rows for message in row["messages"]]
    assert any("inventory\nObs" in text for text in texts) == (not stop)
    assert "Action: inventory" in texts or not stop
    assert done.rows("refused.jsonl") == []
    same = ("ends", "stops", "turns", "invalid", "prompt_tokens", "completion_tokens", "episodes")
    assert {n: done.facts[n] for n in same} == {n: react.facts[n] for n in same}
    assert (done.facts["proved"], done.facts["unproved"]) == (8, {})


def test_episodes_that_cannot_be_proved_are_refused(run_job: Any, served: dict[str, Any]) -> None:
    done = run_job(COMMAND, command("edit", limit=2), placement=PLACEMENT, leases=served)
    assert done.code == 1, done.output
    assert "(edited)" in done.output
    assert "not one of 4 episodes can be proved" in done.output
    assert not (done.data / "trajectories.jsonl").exists()
    assert done.facts["unproved"] == {"edited": 4}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("summary", "compacted"), ("edit", "edited"), ("padding", "retokenised")],
)
def test_planted_faults_are_counted(
    run_job: Any, served: dict[str, Any], fault: str, reason: str
) -> None:
    config = command(fault, limit=2, keeps_all=True)
    kept = run_job(COMMAND, config, placement=PLACEMENT, leases=served)
    assert kept.code == 0, kept.output
    check_artifact("Trajectories", kept.data, {"reward_range": [0, 1]}, {}, kept.facts)
    assert kept.facts["unproved"] == {reason: 4}
    rows = kept.rows("trajectories.jsonl")
    assert [row["unproved"]["reason"] for row in rows] == [reason] * 4
    assert [row["reward"] for row in rows] == [
        refused["reward"] for refused in kept.rows("refused.jsonl")
    ]


def test_half_of_a_stream_is_no_reply(run_job: Any, served: dict[str, Any]) -> None:
    """The program stops reading its first reply, which is never whole, and goes on."""
    with cut_once_beside(served["policy"]["url"], close=False) as url:
        shared = {**served, "policy": {**served["policy"], "url": url}}
        config = command("half", limit=1, attempts=1)
        done = run_job(COMMAND, config, placement=PLACEMENT, leases=shared)
    assert done.code == 1, done.output
    assert "the program let go of a reply before it had ended" in done.output
    assert done.facts["unproved"] == {"edited": 1}


def test_a_program_that_asks_on_is_at_its_limit(run_job: Any, served: dict[str, Any]) -> None:
    done = run_job(
        COMMAND, command("greedy", limit=2, max_turns=2), placement=PLACEMENT, leases=served
    )
    assert done.code == 0, done.output
    rows = done.rows("trajectories.jsonl")
    assert {row["end"] for row in rows} <= {"limit", "success", "failure"}
    assert [row["turns"] for row in rows if row["end"] == "limit"].count(2) > 0


def test_a_program_that_fails_is_an_error_with_its_words(
    run_job: Any, served: dict[str, Any]
) -> None:
    config = command("crash", limit=1, attempts=1)
    done = run_job(COMMAND, config, placement=PLACEMENT, leases=served)
    assert done.code == 75
    assert "exit status 1: planted: no agent today" in done.output
    within = {**PLACEMENT, "error_budget": 1.0}
    done = run_job(COMMAND, config, placement=within, leases=served)
    assert done.code == 0, done.output
    [row] = done.rows("trajectories.jsonl")
    assert (row["end"], row["reward"], row["turns"]) == ("error", None, 0)


def test_a_command_that_does_not_end_is_ended(
    run_job: Any, served: dict[str, Any], tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    words = ["sh", "-c", f"sleep 1000 & echo $! >> {pids}; sleep 1000"]
    config = command(words=words, python=False, files=[], limit=1, attempts=1)
    place = {**PLACEMENT, "episode_s": 0.5}
    done = run_job(COMMAND, config, placement=place, leases=served)
    assert done.code == 75
    assert "did not end within 0.5 s" in done.output
    # What it started beside itself has ended too.
    begun = list(map(int, pids.read_text().split()))
    assert begun
    wait_for(lambda: not any(map(started, begun)))


def test_a_command_gets_the_files_and_variables_that_are_its_own(
    run_job: Any, served: dict[str, Any], monkeypatch: Any
) -> None:
    monkeypatch.setenv("ITS_KEY", "not for programs")
    shared = {**served, "policy": {**served["policy"], "secrets": {"key": "ITS_KEY"}}}
    script = 'test -z "$ITS_KEY" && ls agents && python3 agents/crafter.py by-command'
    config = command(words=["sh", "-c", script], python=False, limit=1, attempts=1)
    done = run_job(COMMAND, config, placement=PLACEMENT, leases=shared)
    assert done.code == 0, done.output
    assert done.facts["proved"] == 1
    assert not list((done.staging / "work" / "running").iterdir())
