"""Recorded episodes become the tuples that episodes of one's own do: the tokens are those that a
server sees and that supervised training trains."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

pytest.importorskip("torch")

from tests.torch.online_rl.recordings import rules_of, wandering
from tests.torch.trl.jobs import small_model
from transformers import AutoModelForCausalLM

from agentc_backends.agents.common.connect import AgentGymWorld
from agentc_backends.agents.common.episode import Attempt
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.rollout.play import TurnRules, play
from agentc_backends.data.chat.rows import MaskRules, encode_rows
from agentc_backends.data.chat.tokens import Encoder, load_encoder
from agentc_backends.environments.server.inside import InsideEnvironment
from agentc_backends.environments.server.program import opener_of
from agentc_backends.openai_api.chat_text import ChatText
from agentc_backends.trainers.online_rl.replay import (
    decode_turns,
    episode_of_row,
    tokenise_episodes,
)
from agentc_backends.trainers.online_rl.sampling import Decode, LivePolicy, Sampler, TurnTokens

CONTEXT = 256
ATTEMPTS = [
    Attempt(position=n, task_id=f"train-{n}", number=0, seed=n, prompt_seed=0) for n in range(8)
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def encoder(model: Path) -> Encoder:
    return load_encoder(model)


def said_of(row: Mapping[str, Any], encoder: Encoder) -> list[TurnTokens]:
    [found] = tokenise_episodes([row], encoder, "sum", CONTEXT).rows
    return decode_turns(found["turn_tokens"])


@pytest.mark.parametrize("memory", ["all", "last"])
def test_prompts_are_those_that_a_policy_saw(
    memory: Literal["all", "last"], model: Path, encoder: Encoder
) -> None:
    tokenizer = encoder.tokenizer
    policy = LivePolicy(
        Sampler(AutoModelForCausalLM.from_pretrained(model)),
        ChatText(str(model), tokenizer),
        tokenizer,
        Decode(max_tokens=4, ends=frozenset({tokenizer.eos_token_id})),
        CONTEXT,
    )
    turns = TurnRules(
        max_turns=4, on_invalid="observe", on_overflow="error", invalid_message="What?",
        action_span="line", action_space="optional",
    )  # fmt: skip

    async def played() -> Sequence[dict[str, Any]]:
        module = "agentc_backends.environments.corridor.job_serve"
        world = AgentGymWorld(InsideEnvironment(opener_of(["-m", module], {})))
        async with policy.acting():
            rows = [play(rules_of(memory), turns, each, policy, world) for each in ATTEMPTS]
            return await asyncio.gather(*rows)

    again = 0
    for attempt, row in zip(ATTEMPTS, asyncio.run(played()), strict=True):
        lived = policy.turns[attempt.id]
        found = said_of(row, encoder)
        assert [one.prompt for one in found] == [one.prompt for one in lived]
        assert [one.cut for one in found] == [one.cut for one in lived]
        # A text may be written in other tokens than those that were drawn.
        again += sum(a.reply == b.reply for a, b in zip(found, lived, strict=True))
        assert row["turns"] == len(found)
    assert again > 0


@pytest.mark.parametrize("memory", ["all", "last"])
def test_replies_are_the_tokens_that_supervised_training_trains(
    memory: Literal["all", "last"], encoder: Encoder
) -> None:
    rules = MaskRules(loss_on="after_prompt", max_length=2048, truncation="error")
    for row in wandering(4, memory):
        row["messages"][-1]["cut"] = True  # no end of such a turn is trained
        trained = []
        for side in encode_rows(encoder, [row], rules)[0]:
            trained += [token for token, on in zip(side.ids, side.trained, strict=True) if on]
        [found] = tokenise_episodes([row], encoder, "sum", 2048).rows
        said = decode_turns(found["turn_tokens"])
        assert [token for one in said for token in one.reply] == trained
        assert [one.cut for one in said] == [False] * (row["turns"] - 1) + [True]
        assert found["turn_rewards"] == row["rewards"]
        if memory == "all":  # all states are read in one pass
            assert len({id(turn.state.text) for turn in episode_of_row(found).turns}) == 1


def test_a_reply_of_which_a_part_was_seen_is_whole(encoder: Encoder) -> None:
    [row] = wandering(1, "all", skill=1.0)
    opening = row["prompt_length"]
    thought = "The way out is right. ### right"
    row["messages"][opening]["raw"] = thought
    first, second, *_ = said_of(row, encoder)
    assert thought in encoder.tokenizer.decode(first.reply)
    assert thought not in encoder.tokenizer.decode(second.prompt)


def test_what_is_left_out_is_counted(encoder: Encoder) -> None:
    rows = wandering(5)
    rows[0] |= {"end": "error", "reward": None}
    rows[1] |= {"forgotten": 2}
    rows[2]["messages"][-1] |= {"content": "", "cut": True}
    rows[3] |= {"messages": rows[3]["messages"][:3], "turns": 0, "rewards": [], "end": "overflow"}
    found = tokenise_episodes(rows, encoder, "sum", CONTEXT)
    assert [row["id"] for row in found.rows] == [rows[4]["id"]]
    left = found.errors_left_out, found.forgotten_left_out, found.wordless_left_out
    assert left == (1, 1, 2)
    with pytest.raises(FatalError, match="of 4, 1 ended in an infrastructure error, 1 had turns"):
        tokenise_episodes(rows[:4], encoder, "sum", CONTEXT)


def test_rewards_of_another_kind_and_turns_without_room_are_refused(encoder: Encoder) -> None:
    rows = wandering(3)
    with pytest.raises(FatalError, match="`rewards: latest` its turns make it"):
        tokenise_episodes(rows, encoder, "latest", CONTEXT)
    # What a reply without an action has cost, no step says.
    [penalised] = tokenise_episodes(
        [{**rows[0], "invalid": 1, "reward": -100.0}], encoder, "sum", CONTEXT
    ).rows
    assert sum(penalised["turn_rewards"]) == pytest.approx(-100)
    with pytest.raises(FatalError, match="and the model reads 20; take a model with a longer"):
        tokenise_episodes(rows, encoder, "sum", 20)
