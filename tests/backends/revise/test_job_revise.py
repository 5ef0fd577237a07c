"""The job against real servers: a scripted judge, and TextCraft to try splices out in."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.backends.conftest import TEXTCRAFT
from tests.backends.revise.released import grown, node, recorded_row
from tests.support.patience import PATIENCE_S

from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.agents.revise.backend import THOUGHTS
from agentc_backends.statistics.measurements import read_metrics

MODULE = "agentc_backends.agents.revise.job_revise"
PLACEMENT = {"concurrency": 8, "error_budget": 0.0}
CONFIG: dict[str, Any] = {
    "parts": ["revision", "good"],
    "bars": {"alpha": 0.5, "alpha_is": "above", "beta": 0.2, "beta_is": "gap"},
    "judge": {
        "start": "root",
        "unparsed": "bad",
        "on_no_bad": "whole",
        "parser": "strict",
        "once_per": "path",
        "instruction": None,
    },
    "decode": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 64, "stop": []},
    "signal": {
        "thoughts": list(THOUGHTS),
        "action": "wait",
        "acknowledgement": "ok.",
        "draw": "pair",
        "reply_format": "react",
    },
    "best_reward": None,
    "dedup_good": True,
    "dedup_revision": False,
    "max_pairs_per_tree": None,
    "max_revision": None,
    "max_good": None,
    "seed": 123,
    "verify": "off",
    "observation_prefix": "Observation: ",
}
WITHOUT_JUDGE = {"parts": ["direct", "good"], "judge": None, "decode": None}
BLOCK = "minecraft:diamond_block"
TREE = [
    node(0, None),
    node(1, 0, action="get 9 diamond", leaf=False),
    node(2, 1, 1.0, "craft 1 diamond block using 9 diamond"),
    node(3, 1, action="craft 1 diamond boots using 4 diamond"),
    node(4, 0, action="inventory", leaf=False),
    node(5, 4, action="get 1 diamond block"),
]


def written(folder: Path, *rows: dict[str, Any]) -> dict[str, list[Path]]:
    folder.mkdir(parents=True)
    (folder / "trees.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"trees": [folder]}


@pytest.fixture
def judge(share: Any) -> Callable[..., Any]:
    """A server that finds some actions bad."""

    def launch(*bad: str, delay: float = 0.0, otherwise: str = "Judgement: Good") -> Any:
        rules = [
            {"match": rf"Current step:\nAction: {action}\n", "reply": "No.\nJudgement: Bad"}
            for action in bad
        ]
        rules.append({"reply": otherwise})
        command = ["-m", "agentc_backends.servers.scripted.job_serve", "--port", "0"]
        command += ["--ready-file", "READY", "--rules", json.dumps(rules), "--delay", str(delay)]
        command += ["--served-name", "policy"]
        return share("judge", command, "judge-token", model="policy", log="judge.log")

    return launch


def replies(row: dict[str, Any]) -> list[tuple[str, bool | None]]:
    return [
        (message["content"].rsplit("Action: ", 1)[1], message.get("loss"))
        for message in row["messages"][row["prompt_length"] :]
        if message["role"] == "assistant"
    ]


def test_rows_judgements_and_facts(tmp_path: Path, run_job: Any, judge: Any) -> None:
    inputs = written(tmp_path / "trees", grown(TREE, BLOCK), {"end": "error"})
    leases = {"policy": judge("inventory").lease}
    done = run_job(MODULE, CONFIG, inputs=inputs, placement=PLACEMENT, leases=leases)
    assert done.code == 0, done.output
    check_artifact("SFTDataset", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    block = "craft 1 diamond block using 9 diamond"
    boots = "craft 1 diamond boots using 4 diamond"
    rows = {row["id"]: row for row in done.rows("rows.jsonl")}
    name = f"{BLOCK}#0"
    assert {each: replies(row) for each, row in rows.items()} == {
        f"{name}/r2-3": [
            ("get 9 diamond", False),
            (boots, False),
            ("wait", True),
            (block, True),
        ],
        f"{name}/r2-5": [
            ("inventory", False),
            ("wait", True),
            ("get 9 diamond", True),
            (block, True),
        ],
        f"{name}/g2": [("get 9 diamond", None), (block, None)],
    }
    assert rows[f"{name}/r2-5"]["flagged"] == 1
    assert rows[f"{name}/r2-3"]["flagged"] is None
    facts = done.facts
    assert (facts["trees"], facts["trees_broken"], facts["pairs"]) == (1, 1, 2)
    assert facts["rows_by_part"] == {"good": 1, "revision": 2}
    assert (facts["judgements"], facts["judgements_wanted"]) == (3, 3)
    assert facts["verdicts"] == {"bad": 1, "good": 2}
    assert facts["revision_length"] == 1.0
    assert facts["action_tokens"] == 3 * (1 + 2 + 2)
    judged = [json.loads(t) for t in (done.data / "judgements.jsonl").read_text().splitlines()]
    assert [row["node"] for row in judged] == [1, 3, 4]
    rules = read_metrics(done.data)["protocol"]
    assert rules == {"judge": {**CONFIG["judge"], **CONFIG["decode"]}}


@pytest.mark.slow
def test_neither_concurrency_nor_a_kill_changes_a_row(
    tmp_path: Path, run_job: Any, judge: Any, job_process: Any
) -> None:
    trees = [recorded_row("textcraft_mcts_tree.json", f"task{n}") for n in range(6)]
    inputs = written(tmp_path / "trees", *trees)
    slow = {"policy": judge("inventory", delay=0.05).lease}
    one = {"concurrency": 1, "error_budget": 0.0}
    whole = run_job(MODULE, CONFIG, inputs=inputs, placement=one, leases=slow)
    assert whole.code == 0, whole.output

    staging = tmp_path / "killed"
    process = job_process(
        MODULE, CONFIG, {"concurrency": 2, "error_budget": 0}, slow, staging, inputs=inputs
    )
    journal = staging / "work" / "judgements.jsonl"
    deadline = time.monotonic() + PATIENCE_S
    while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = journal.read_bytes().count(b"\n")
    again = run_job(
        MODULE, CONFIG, inputs=inputs, placement=PLACEMENT, leases=slow, staging=staging
    )
    assert again.code == 0, again.output
    assert before < again.facts["judgements"]
    for name in ("rows.jsonl", "judgements.jsonl"):
        assert (again.data / name).read_bytes() == (whole.data / name).read_bytes()
    assert again.facts == whole.facts


def test_splices_are_tried_out(tmp_path: Path, run_job: Any, environment: Any) -> None:
    inputs = written(tmp_path / "trees", grown(TREE, BLOCK))
    leases = {"environment": environment.lease}
    config = {**CONFIG, **WITHOUT_JUDGE, "verify": "mark"}
    done = run_job(MODULE, config, inputs=inputs, placement=PLACEMENT, leases=leases)
    assert done.code == 0, done.output
    rows = {row["id"].split("/")[1]: row for row in done.rows("rows.jsonl")}
    # After the boots too few diamonds are left for the block.
    assert rows["d2-3"]["verified"] is False
    assert rows["d2-3"]["unverified_because"] == "other_reward"
    assert rows["d2-5"]["verified"] is True
    assert rows["d2-5"]["same_observations"] is False  # this tree's observations are made up
    assert "verified" not in rows["g2"]
    assert done.facts["verified"] == 1
    assert done.facts["unverified"] == {"other_reward": 1}

    dropped = run_job(
        MODULE,
        {**config, "verify": "drop"},
        inputs=inputs,
        placement=PLACEMENT,
        leases=leases,
        staging=tmp_path / "dropped",
    )
    assert [row["id"].split("/")[1] for row in dropped.rows("rows.jsonl")] == ["d2-5", "g2"]
    assert dropped.facts["left_out"] == {"unverified": 1}


def test_a_signal_that_ends_the_episode_is_told(tmp_path: Path, run_job: Any, share: Any) -> None:
    strict = share("environment", [*TEXTCRAFT, "--end-on-refusal"], "environment-token")
    inputs = written(tmp_path / "trees", grown(TREE, BLOCK))
    config = {**CONFIG, **WITHOUT_JUDGE, "verify": "mark"}
    leases = {"environment": strict.lease}
    done = run_job(MODULE, config, inputs=inputs, placement=PLACEMENT, leases=leases)
    assert done.code == 0, done.output
    # That TextCraft ends an episode at the first refused action: here "get 1 diamond block".
    assert done.facts["unverified"] == {"ended_before_signal": 1, "signal_ended": 1}
    legal = {**config, "signal": {**CONFIG["signal"], "action": "inventory"}}
    done = run_job(
        MODULE,
        legal,
        inputs=inputs,
        placement=PLACEMENT,
        leases=leases,
        staging=tmp_path / "legal",
    )
    # After the boots the last action is refused, and nothing was to follow it.
    assert done.facts["unverified"] == {"ended_before_signal": 1, "other_reward": 1}
    helmet = "craft 1 diamond helmet using 5 diamond"
    boots = "craft 1 diamond boots using 4 diamond"
    longer = [
        node(0, None),
        node(1, 0, action="get 9 diamond", leaf=False),
        node(2, 1, action=helmet, leaf=False),
        node(3, 2, 1.0, action="inventory"),
        node(4, 1, action=boots, leaf=False),
        node(5, 4, action=boots),
    ]
    done = run_job(
        MODULE,
        legal,
        inputs=written(tmp_path / "longer", grown(longer, BLOCK)),
        placement=PLACEMENT,
        leases=leases,
        staging=tmp_path / "early",
    )
    assert done.facts["unverified"] == {"ended_early": 1}


def test_the_recorded_tree_can_be_replayed(tmp_path: Path, run_job: Any, environment: Any) -> None:
    inputs = written(tmp_path / "trees", recorded_row("textcraft_mcts_tree.json", BLOCK))
    config = {**CONFIG, **WITHOUT_JUDGE, "verify": "mark"}
    leases = {"environment": environment.lease}
    done = run_job(MODULE, config, inputs=inputs, placement=PLACEMENT, leases=leases)
    assert done.code == 0, done.output
    assert done.facts["pairs"] == 8
    assert done.facts["verified"] == 8


def test_only_so_many_rows(tmp_path: Path, run_job: Any, judge: Any) -> None:
    trees = [recorded_row("textcraft_mcts_tree.json", f"task{n}") for n in range(6)]
    inputs = written(tmp_path / "trees", *trees)
    config = {**CONFIG, "max_revision": 5, "max_good": 3, "dedup_revision": True}
    leases = {"policy": judge("inventory").lease}
    done = run_job(MODULE, config, inputs=inputs, placement=PLACEMENT, leases=leases)
    assert done.code == 0, done.output
    rows = done.rows("rows.jsonl")
    assert done.facts["rows_by_part"] == {"good": 3, "revision": 5}
    assert done.facts["pairs_taken"]["revision"] < done.facts["pairs"]
    revisions = [row for row in rows if row["part"] == "revision"]
    without_thoughts = {
        json.dumps([m for m in row["messages"] if "Action: wait" not in m["content"]])
        + row["task_id"]
        for row in revisions
    }
    assert len(without_thoughts) == 5


def test_optimal_and_good_are_told_apart(tmp_path: Path, run_job: Any) -> None:
    nodes = [*TREE, node(6, 0, 0.7, "get 1 stick"), node(7, 0, 1.0, "get 2 stick")]
    inputs = written(tmp_path / "trees", grown(nodes, BLOCK))
    config = {**CONFIG, **WITHOUT_JUDGE, "parts": ["good", "optimal"], "best_reward": 1.0}
    done = run_job(MODULE, {**config, "signal": None}, inputs=inputs, placement=PLACEMENT)
    assert done.code == 0, done.output
    ids = [row["id"].split("/")[1] for row in done.rows("rows.jsonl")]
    assert ids == ["o2", "o7", "g6"]
    only = {**config, "parts": ["optimal"], "bars": None, "signal": None}
    done = run_job(MODULE, only, inputs=inputs, placement=PLACEMENT, staging=tmp_path / "only")
    assert [row["part"] for row in done.rows("rows.jsonl")] == ["optimal"] * 2


@pytest.mark.parametrize(
    ("changes", "nodes", "said"),
    [
        ({"bars": {**CONFIG["bars"], "alpha": 1.0}}, TREE, "the largest reward is 1, and alpha is"),
        ({"bars": {**CONFIG["bars"], "beta": 1.0}}, TREE, "never far enough apart for beta"),
        ({}, TREE[:2], "has a finished trajectory"),
        ({}, None, "no tree that was searched to its end"),
    ],
)
def test_no_row_at_all_is_a_failure_that_says_why(
    tmp_path: Path, run_job: Any, changes: dict[str, Any], nodes: Any, said: str
) -> None:
    row = {"end": "error"} if nodes is None else grown(nodes, BLOCK)
    inputs = written(tmp_path / "trees", row)
    config = {**CONFIG, **WITHOUT_JUDGE, "parts": ["direct"], **changes}
    done = run_job(MODULE, config, inputs=inputs, placement=PLACEMENT)
    assert done.code == 1
    assert said in done.output
    assert "Traceback" not in done.output


def test_a_server_that_goes_away_is_no_verdict(tmp_path: Path, run_job: Any, judge: Any) -> None:
    server = judge("inventory")
    server.process.kill()
    server.process.wait()
    inputs = written(tmp_path / "trees", grown(TREE, BLOCK))
    leases = {"policy": server.lease}
    done = run_job(MODULE, CONFIG, inputs=inputs, placement=PLACEMENT, leases=leases)
    assert done.code == 75
    assert "does not answer any more" in done.output
    assert not (done.data / "rows.jsonl").exists()


class FailingJudge(ThreadingHTTPServer):
    """Finds every action good; of those in `failing` its replies are no JSON."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.failing: tuple[str, ...] = ()
        self.requests: list[str] = []
        self.lock = threading.Lock()

    @property
    def lease(self) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.server_port}"
        return {"url": url, "token": "judge-token", "model": "policy", "log": "judge.log"}


class _Answers(BaseHTTPRequestHandler):
    server: FailingJudge

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        step = body["messages"][-1]["content"].split("Current step:\nAction: ")[1]
        action = step.partition("\n")[0]
        with self.server.lock:
            self.server.requests.append(action)
        message = {"role": "assistant", "content": "Judgement: Good"}
        usage = {"prompt_tokens": 9, "completion_tokens": 3}
        reply = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
        data = b"out of memory" if action in self.server.failing else json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def failing_judge() -> Iterator[FailingJudge]:
    with FailingJudge() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_pair_whose_judge_fails_is_left_out_within_the_budget(
    tmp_path: Path, run_job: Any, failing_judge: FailingJudge
) -> None:
    inputs = written(tmp_path / "trees", grown(TREE, BLOCK))
    leases = {"policy": failing_judge.lease}
    failing_judge.failing = ("inventory",)
    half = {**PLACEMENT, "error_budget": 0.5}
    done = run_job(MODULE, CONFIG, inputs=inputs, placement=half, leases=leases)
    assert done.code == 0, done.output
    assert [row["id"].split("/")[1] for row in done.rows("rows.jsonl")] == ["r2-3", "g2"]
    assert done.facts["left_out"] == {"error": 1}
    assert (done.facts["pairs"], done.facts["judgements"]) == (2, 2)


def test_pairs_beyond_the_budget_are_tried_again_by_the_next_run(
    tmp_path: Path, run_job: Any, failing_judge: FailingJudge
) -> None:
    inputs = written(tmp_path / "trees", grown(TREE, BLOCK))
    leases = {"policy": failing_judge.lease}
    failing_judge.failing = ("inventory",)
    done = run_job(MODULE, CONFIG, inputs=inputs, placement=PLACEMENT, leases=leases)
    assert done.code == 75
    assert "1 of 2 pairs were lost to an infrastructure error; error_budget allows 0" in done.output
    assert f"{BLOCK}#0/2-5: " in done.output
    assert not (done.data / "rows.jsonl").exists()

    failing_judge.failing = ()
    failing_judge.requests.clear()
    done = run_job(MODULE, CONFIG, inputs=inputs, placement=PLACEMENT, leases=leases)
    assert done.code == 0, done.output
    assert failing_judge.requests == ["inventory", "get 1 diamond block"]
    assert done.facts["left_out"] == {}
    assert done.facts["rows_by_part"] == {"good": 1, "revision": 2}
