"""Rollouts whose replies a critic chooses, on real servers: held against plain forward passes over
the same candidates, against other concurrency, and against a run that was cut off."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))

from test_real_scores import TOLERANCE, Bench, bench, write  # noqa: F401
from tests.backends.conftest import write_job
from tests.backends.inside.test_same_results import inside
from tests.backends.rollout.test_job_rollout import CONFIG

from agentc.program.job import Job, read_rows
from agentc.runtime.contracts.artifacts import ContractError, check_artifact
from agentc_backends.agents.common.connect import ChatPolicy
from agentc_backends.agents.common.seeds import draw_seed, turn_seed
from agentc_backends.agents.rollout.job_rollout import roll_out
from agentc_backends.clients import ChatClient

DECODE = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 6, "stop": []}
PLAIN: Mapping[str, Any] = {
    **CONFIG,
    "limit": 3,
    "attempts": 1,
    "decode": DECODE,
    "max_turns": 2,
    "prompt": {**CONFIG["prompt"], "instruction": "Guess.", "reply_format": "text"},  # type: ignore[dict-item]
    "reward_range": [-20.0, 0.0],
    "success_at": 0.0,
}
CANARY = "Zanzibar-canary"


def play(
    bench: Bench,  # noqa: F811
    name: str,
    config: Mapping[str, Any],
    inputs: Mapping[str, Sequence[Path]],
    *,
    concurrency: int = 4,
    finished: Sequence[str] = (),
) -> Path:
    staging = bench.root / name
    leases = {
        "policy": bench._leases["policy"],
        "environment": inside("twenty_questions", bench.root / f"{name}-world"),
    }
    if inputs:
        leases["critic"] = bench._leases["critic"]
    placement = {"concurrency": concurrency, "error_budget": 0.0}
    path = write_job(staging, config, inputs=inputs, placement=placement, leases=leases)
    if finished:
        (staging / "work" / "episodes.jsonl").write_text("".join(finished), "utf-8")
    asyncio.run(roll_out(Job(path)))
    return staging


@pytest.fixture(scope="module")
def given(bench: Bench) -> dict[str, Sequence[Path]]:  # noqa: F811
    """The inputs of a choice; every task has a hidden text."""
    rows = read_rows(play(bench, "plain", PLAIN, {}) / "data" / "trajectories.jsonl")
    tasks = sorted({row["task_id"] for row in rows})
    texts: Iterator[dict[str, Any]] = (
        {"id": task, "task_id": task, "text": f"{CANARY} {task}"} for task in tasks
    )
    hidden = write(bench.root / "told", "privileged.jsonl", texts)
    # No input `reference`: the job leases none where that is the policy.
    return {"critic": [bench.models["critic"]], "privileged": [hidden]}


@pytest.fixture(scope="module")
def chosen(bench: Bench, given: dict[str, Sequence[Path]]) -> Path:  # noqa: F811
    return play(bench, "chosen", {**PLAIN, "candidates": 4}, given)


def test_each_reply_has_the_largest_advantage(bench: Bench, chosen: Path) -> None:  # noqa: F811
    contract = {"reward_range": [-20.0, 0.0]}
    facts = json.loads((chosen / "facts.json").read_text("utf-8"))
    check_artifact("Trajectories", chosen / "data", contract, {}, facts)
    rows = read_rows(chosen / "data" / "trajectories.jsonl")
    lease = bench._leases["policy"]

    async def drawn(prompt: Sequence[Mapping[str, str]], seeds: Sequence[int]) -> list[Any]:
        async with ChatClient(lease["url"], lease["token"], lease["model"]) as chat:
            policy = ChatPolicy(chat, DECODE)
            return [await policy.reply_with_tokens(list(prompt), seed, "") for seed in seeds]

    turns = 0
    for row in rows:
        messages = [{"role": m["role"], "content": m["content"]} for m in row["messages"]]
        places = range(row["prompt_length"], len(messages), 2)
        for number, (place, choice) in enumerate(zip(places, row["choices"], strict=True)):
            seed = turn_seed(row["seed"], number)
            replies = asyncio.run(drawn(messages[:place], [draw_seed(seed, k) for k in range(4)]))
            first, *rest = messages[:place]
            told = f"In light that the answer is: {CANARY} {row['task_id']}.\n\n"
            seen = [{**first, "content": told + first["content"]}, *rest]
            worth = []
            for reply in replies:
                size = len(reply.tokens)
                ours = bench.direct("critic", seen, reply.tokens)[-size:]
                theirs = bench.direct("policy", messages[:place], reply.tokens)[-size:]
                worth.append((sum(ours) - sum(theirs)) / size)
            assert choice["advantages"] == pytest.approx(worth, abs=TOLERANCE)
            assert choice["taken"] == worth.index(max(worth))
            assert messages[place]["content"] == replies[choice["taken"]].text
            turns += 1
    assert (facts["drawn"], facts["turns"]) == (4 * turns, turns)
    assert facts["moved"] > 0, "else the first reply would do as well"
    assert facts["scored_tokens"] == sum(row["tokens"]["scored"] for row in rows) > 0


def apart(staging: Path) -> tuple[list[dict[str, Any]], list[float]]:
    """Rows without the advantages in them, and those."""
    rows = read_rows(staging / "data" / "trajectories.jsonl")
    choices = [choice for row in rows for choice in row["choices"]]
    return rows, [value for choice in choices for value in choice.pop("advantages") or ()]


def test_results_do_not_depend_on_concurrency_or_an_interruption(
    bench: Bench,  # noqa: F811
    chosen: Path,
    given: dict[str, Sequence[Path]],
) -> None:
    wanted, worth = apart(chosen)
    config = {**PLAIN, "candidates": 4}
    alone = play(bench, "alone", config, given, concurrency=1)
    rows, theirs = apart(alone)
    assert rows == wanted
    # A server's batches may show in the last digit.
    assert theirs == pytest.approx(worth, abs=1.5e-4)
    # What a kill leaves: an episode, and a part of another.
    lines = (chosen / "work" / "episodes.jsonl").read_text("utf-8").splitlines(keepends=True)
    resumed = play(bench, "resumed", config, given, finished=[lines[0], lines[1][:50]])
    assert apart(resumed)[0] == wanted
    facts = [json.loads((run / "facts.json").read_text("utf-8")) for run in (chosen, resumed)]
    assert [each["resumed"] for each in facts] == [0, 1]
    same = ("drawn", "alike", "moved", "scored_tokens", "prompt_tokens", "completion_tokens")
    assert [facts[0][name] for name in same] == [facts[1][name] for name in same]


def test_no_hidden_text_is_written_but_by_who_collected_it(bench: Bench, chosen: Path) -> None:  # noqa: F811
    files = [path for path in chosen.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert [path.name for path in files if CANARY.encode() in path.read_bytes()] == []


def test_the_contract_knows_which_reply_had_to_be_taken(chosen: Path, tmp_path: Path) -> None:
    rows = read_rows(chosen / "data" / "trajectories.jsonl")
    choice = rows[0]["choices"][0]
    choice["taken"] = (choice["taken"] + 1) % 4
    write(tmp_path, "trajectories.jsonl", iter(rows))
    with pytest.raises(ContractError, match="has the largest advantage"):
        check_artifact("Trajectories", tmp_path, {"reward_range": [-20.0, 0.0]}, {}, {})
