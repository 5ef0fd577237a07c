"""Episodes of a model in training are those of the same weights behind a server, row for row."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM

from agentc_backends.agents.client.errors import ContextOverflowError
from agentc_backends.agents.common.connect import AgentGymWorld, ChatPolicy
from agentc_backends.agents.common.episode import Attempt, EpisodeRules, Policy
from agentc_backends.agents.common.prompt import EpisodePrompt
from agentc_backends.agents.rollout.episode import play
from agentc_backends.agents.rollout.turns import TurnRules
from agentc_backends.environments.server.inside import InsideEnvironment
from agentc_backends.environments.server.program import opener_of
from agentc_backends.servers.transformers.chat_text import ChatText
from agentc_backends.servers.transformers.checkpoint import load_tokenizer
from agentc_backends.trainers.online_rl.acting import LivePolicy
from agentc_backends.trainers.online_rl.sampling import Decode, DrawSteps, Sampler

_TESTS = Path(__file__).parents[2]
sys.path[:0] = [str(_TESTS / "torch" / "transformers_server"), str(_TESTS / "backends" / "servers")]

from tiny_models import CONFIGS, make_model  # noqa: E402

from conformance import Target, started  # noqa: E402

CONTEXT = 300
SERVER = "agentc_backends.servers.transformers.job_serve"
RULES = EpisodeRules(
    prompt=EpisodePrompt(
        instruction="Find out.", acknowledgement="OK", examples=(), reply_format="text"
    ),
    split="train",
    reward_range=(-100.0, 10.0),
    reward_kind="sum",
    success_at=1.0,
)
TURNS = TurnRules(
    max_turns=6, on_invalid="observe", on_overflow="drop_oldest", invalid_message="What?",
    action_span="line", action_space="optional",
)  # fmt: skip
ATTEMPTS = [
    Attempt(position=n, task_id=f"train-{n}", number=0, seed=100 + n, prompt_seed=n)
    for n in range(16)
]
DECODE = {"temperature": 1.0, "top_p": 0.9, "max_tokens": 12}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("policy"), CONFIGS["llama-gqa"])


@pytest.fixture(scope="module")
def target(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    arguments = ["--model", str(folder), "--max-model-len", str(CONTEXT)]
    place = tmp_path_factory.mktemp("server")
    with started(sys.executable, SERVER, arguments, place) as (url, _):
        yield Target(url, "test-token", "policy", str(folder), CONTEXT)


def live(folder: Path, stops: tuple[str, ...] = ()) -> LivePolicy:
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = load_tokenizer(str(folder))
    return LivePolicy(
        Sampler(model),
        ChatText(str(folder), tokenizer),
        tokenizer,
        Decode(**DECODE, ends=frozenset({tokenizer.eos_token_id})),  # type: ignore[arg-type]
        CONTEXT,
        stops,
    )


async def all_played(policy: Policy) -> list[dict[str, Any]]:
    module = "agentc_backends.environments.corridor.job_serve"
    world = AgentGymWorld(InsideEnvironment(opener_of(["-m", module], {})))
    rows = [play(RULES, TURNS, attempt, policy, world) for attempt in ATTEMPTS]
    return [*await asyncio.gather(*rows)]


@pytest.mark.parametrize("stops", [(), ("a", "Got")])
def test_rows_are_those_of_a_server(folder: Path, target: Target, stops: tuple[str, ...]) -> None:
    async def behind_a_server() -> list[dict[str, Any]]:
        async with target.client() as chat:
            return await all_played(ChatPolicy(chat, {**DECODE, "stop": stops}))

    async def in_training() -> list[dict[str, Any]]:
        policy = live(folder, stops)
        async with policy.acting():
            rows = await all_played(policy)
        for attempt, row in zip(ATTEMPTS, rows, strict=True):
            said = policy.said[attempt.id]
            assert len(said) == row["turns"]
            assert sum(len(each.reply) for each in said) == row["tokens"]["completion"]
            # Until a full context makes it forget its oldest turns, each prompt goes on the last.
            assert said[1].prompt[: len(said[0].prompt)] == said[0].prompt
        return rows

    served, trained = asyncio.run(behind_a_server()), asyncio.run(in_training())
    assert served == trained
    texts = {m["content"] for row in served for m in row["messages"] if m["role"] == "assistant"}
    assert len(texts) > 20


def test_a_prompt_without_room_for_a_reply_is_refused(folder: Path) -> None:
    async def ask() -> None:
        policy = live(folder)
        async with policy.acting():
            await policy.reply([{"role": "user", "content": "word " * CONTEXT}], 1, "a")

    with pytest.raises(ContextOverflowError, match=f"of {CONTEXT} of the model"):
        asyncio.run(ask())


def test_what_fails_while_drawing_reaches_every_episode(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = [{"role": "user", "content": "hello"}]

    async def ask() -> tuple[list[Any], str]:
        policy = live(folder)
        async with policy.acting():
            with monkeypatch.context() as patched:
                patched.setattr(DrawSteps, "advance", _broken)
                asked = [policy.reply(talk, n, str(n)) for n in range(3)]
                told = await asyncio.gather(*asked, return_exceptions=True)
            return told, (await policy.reply(talk, 1, "later")).text

    told, later = asyncio.run(ask())
    assert [str(each) for each in told] == ["no memory"] * 3
    assert later


def _broken(*_: object) -> bool:
    raise RuntimeError("no memory")
