"""The rank jobs against a scripted server, to which each of its 260 tokens is equally likely."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.backends.conftest import Start, Started

from agentc.runtime.contracts.artifacts import ContractError, check_artifact
from agentc_backends.agents.rank.turns import valued_turn

REFERENCE = "agentc_backends.agents.rank.job_reference"
RANK = "agentc_backends.agents.rank.job_rank"
EVEN = -math.log(260)
PLACEMENT = {"concurrency": 4, "error_budget": 0.0}
NOTES = {
    "parameterisation": "log_ratio",
    "normalisation": "turn",
    "template": "The answer is {privileged}.",
    "reference": "model/0",
}


@pytest.fixture
def scripted(share: Start) -> Started:
    command = ["-m", "agentc_backends.servers.scripted.job_serve", "--port", "0"]
    command += ["--ready-file", "READY", "--max-model-len", "200"]
    return share("policy", command, "policy-token", model="policy", log="policy.log")


def turn(task: str, text: str = "?", **more: Any) -> dict[str, Any]:
    replies = ("reply", "stop", "hm")
    return {
        "id": f"{task}#0@0", "task_id": task, "attempt": 0, "turn": 0, "split": "train",
        "prompt": [{"role": "user", "content": text}], "prompt_length": 1, "taken": "stop",
        "reward": 0.5, "candidates_unique": 3, "end": "sampled",
        "candidates": [
            {"text": reply, "tokens": [*reply.encode(), 256], "seed": 0, "stop": "stop",
             "logprob_sum": -float(place), "logprob_n": len(reply) + 1}
            for place, reply in enumerate(replies)
        ],
        **more,
    }  # fmt: skip


def folder(path: Path, name: str, *rows: dict[str, Any]) -> Path:
    path.mkdir()
    (path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def critic(path: Path, **notes: Any) -> Path:
    path.mkdir()
    (path / "agentc_critic.json").write_text(json.dumps({**NOTES, **notes}), "utf-8")
    return path


def drawn(tmp_path: Path, *turns: dict[str, Any]) -> dict[str, list[Path]]:
    return {"candidates": [folder(tmp_path / "drawn", "candidates.jsonl", *turns)]}


def hidden(tmp_path: Path, **texts: str) -> list[Path]:
    rows = [{"id": task, "task_id": task, "text": text} for task, text in texts.items()]
    return [folder(tmp_path / "hidden", "privileged.jsonl", *rows)]


def test_a_reference_scores_the_tokens_that_were_drawn(
    run_job: Any, scripted: Started, tmp_path: Path
) -> None:
    lost = turn("lost", candidates=[], candidates_unique=0, end="overflow")
    given = drawn(tmp_path, turn("a"), lost, turn("long", "x" * 193))
    done = run_job(
        REFERENCE, {"context": "history", "span": "reply"}, placement=PLACEMENT, inputs=given,
        leases={"policy": scripted.lease},
    )  # fmt: skip
    assert done.code == 0, done.output
    check_artifact("CandidateScores", done.data, {}, {}, done.facts)
    first, second, third = done.rows("scores.jsonl")
    assert [score["n"] for score in first["scores"]] == [6, 5, 3]
    assert [score["sum"] for score in first["scores"]] == pytest.approx(
        [6 * EVEN, 5 * EVEN, 3 * EVEN]
    )
    assert (second["end"], third["end"]) == ("overflow", "overflow")
    assert done.facts["scores"] == 3


def test_ranks_by_what_the_sampler_recorded(
    run_job: Any, scripted: Started, tmp_path: Path
) -> None:
    given = drawn(tmp_path, turn("a"), turn("b"))
    given |= {"critic": [critic(tmp_path / "critic")], "privileged": hidden(tmp_path, a="1", b="2")}
    done = run_job(
        RANK, {"span": "reply"}, placement=PLACEMENT, inputs=given,
        leases={"policy": scripted.lease},
    )  # fmt: skip
    assert done.code == 0, done.output
    inputs = {role: [str(path) for path in paths] for role, paths in given.items()}
    check_artifact("RewardedTurns", done.data, {}, inputs, done.facts)
    row = done.rows("turns.jsonl")[0]
    wanted = [EVEN - -place / n for place, n in enumerate((6, 5, 3))]
    assert [c["advantage"] for c in row["candidates"]] == pytest.approx(wanted)
    assert done.facts["ranked"] == 2
    assert 0 < done.facts["rank_of_taken"] < 1
    # Another normalisation of the critic would have given other numbers: the contract reads it.
    critic(tmp_path / "sums", normalisation="none")
    with pytest.raises(ContractError, match="its scores give"):
        check_artifact("RewardedTurns", done.data, {}, {"critic": [str(tmp_path / "sums")]}, {})


@pytest.mark.parametrize(
    ("template", "texts", "wrong"),
    [
        (None, {"a": "1"}, "the critic was trained without"),
        ("The answer is {privileged}.", {}, "the stage has none"),
        ("The answer is {privileged}.", {"b": "1"}, "there is no hidden text of the task a"),
    ],
)
def test_hidden_texts_and_critic_must_go_together(
    template: str | None,
    texts: dict[str, str],
    wrong: str,
    run_job: Any,
    scripted: Started,
    tmp_path: Path,
) -> None:
    given = drawn(tmp_path, turn("a")) | {"critic": [critic(tmp_path / "c", template=template)]}
    if texts:
        given["privileged"] = hidden(tmp_path, **texts)
    done = run_job(
        RANK, {"span": "reply"}, placement=PLACEMENT, inputs=given,
        leases={"policy": scripted.lease},
    )  # fmt: skip
    assert done.code == 1
    assert wrong in done.output


def test_a_critic_with_a_head_is_no_language_model(
    run_job: Any, scripted: Started, tmp_path: Path
) -> None:
    given = drawn(tmp_path, turn("a"))
    given["critic"] = [critic(tmp_path / "critic", parameterisation="value_head")]
    done = run_job(
        RANK, {"span": "reply"}, placement=PLACEMENT, inputs=given,
        leases={"policy": scripted.lease},
    )  # fmt: skip
    assert done.code == 1
    assert "parameterisation is value_head" in done.output
    assert "rank with rank.value_head" in done.output


def test_the_rows_of_a_head_have_values_and_no_reference(tmp_path: Path) -> None:
    given = {"critic": [str(critic(tmp_path / "critic", parameterisation="value_head"))]}
    valued = valued_turn(turn("a"), {"end": "scored", "values": [0.5, -2.0, 3.0]})
    check_artifact("RewardedTurns", folder(tmp_path / "a", "turns.jsonl", valued), {}, given, {})
    other = {**valued["candidates"][0], "advantage": 0.25}
    first = {**valued["candidates"][0], "reference": {"sum": -1.0, "n": 1}}
    for name, candidate, wrong in (
        ("b", other, "advantage is 0.25, but its value is 0.5"),
        ("c", first, "compared with none"),
        ("d", {**other, "critic": {"sum": -1.0, "n": 1}}, "expected {value}"),
    ):
        row = {**valued, "candidates": [candidate, *valued["candidates"][1:]]}
        data = folder(tmp_path / name, "turns.jsonl", row)
        with pytest.raises(ContractError, match=wrong):
            check_artifact("RewardedTurns", data, {}, given, {})
    # Of a critic that compares log-ratios such rows are none.
    ratios = {"critic": [str(critic(tmp_path / "ratios"))]}
    with pytest.raises(ContractError, match=r"expected \{sum, n\}"):
        check_artifact("RewardedTurns", tmp_path / "a", {}, ratios, {})
