"""Episodes of a model in training are those of the same weights behind a server, row for row."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from agentc_backends.agents.common.connect import AgentGymWorld, ChatPolicy
from agentc_backends.agents.common.episode import Attempt, EpisodeRules, Policy
from agentc_backends.agents.common.prompts import EpisodePrompt
from agentc_backends.agents.rollout.play import TurnRules, play
from agentc_backends.clients.errors import ContextOverflowError
from agentc_backends.data.models.checkpoint import set_chat_format
from agentc_backends.engine.model import end_tokens, load_tokenizer
from agentc_backends.environments.server.inside import InsideEnvironment
from agentc_backends.environments.server.program import opener_of
from agentc_backends.openai_api.chat_text import ChatText
from agentc_backends.trainers.online_rl.sampling import Decode, DrawSteps, LivePolicy, Sampler

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
            said = policy.turns[attempt.id]
            assert len(said) == row["turns"]
            assert sum(len(each.reply) for each in said) == row["tokens"]["completion"]
            # Until a full context makes it forget its oldest turns, each prompt goes on the last.
            assert said[1].prompt[: len(said[0].prompt)] == said[0].prompt
        return rows

    served, trained = asyncio.run(behind_a_server()), asyncio.run(in_training())
    assert served == trained
    texts = {m["content"] for row in served for m in row["messages"] if m["role"] == "assistant"}
    assert len(texts) > 20


def test_in_plain_text_a_policy_reads_the_game_and_nothing_else(tmp_path: Path) -> None:
    """ArCHer's transcripts under `memory: last`, byte for byte, from a real game; a reply ends with
    its line, and the line end is a token of it."""
    folder = make_model(tmp_path, CONFIGS["llama-gqa"])
    set_chat_format(folder, "plain")
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), load_tokenizer(str(folder))
    ends = end_tokens(model, tokenizer)
    # Likelier than untrained weights have it, else hardly a reply would reach its line end.
    with torch.no_grad():
        row = model.lm_head.weight[tokenizer("\n")["input_ids"][0]]
        row.copy_(2 * model.model.embed_tokens.weight[5])
    decode = Decode(temperature=1.0, max_tokens=12, ends=ends)
    chat = ChatText(str(folder), tokenizer)
    policy = LivePolicy(Sampler(model), chat, tokenizer, decode, context=512)
    prompt = EpisodePrompt(
        instruction="", acknowledgement=None, examples=(), reply_format="text",
        observation_prefix="", memory="last",
    )  # fmt: skip
    rules = replace(RULES, prompt=prompt, split="all", reward_range=(-20.0, 0.0))
    turns = replace(TURNS, max_turns=20, on_overflow="end")
    game = {"game": "twenty_questions", "objects": "subset", "splits": "together",
            "observation": "transcript", "reward": "per_question"}  # fmt: skip

    async def play_all() -> list[dict[str, Any]]:
        module = "agentc_backends.environments.guessing_games.job_serve"
        world = AgentGymWorld(InsideEnvironment(opener_of(["-m", module], game)))
        async with policy.acting():
            rows = [play(rules, turns, attempt, policy, world) for attempt in attempts]
            return [*await asyncio.gather(*rows)]

    attempts = [replace(each, task_id="dog", number=each.position) for each in ATTEMPTS[:6]]
    ended = 0
    for attempt, row in zip(attempts, asyncio.run(play_all()), strict=True):
        transcript = "Questions:\n"
        assert row["turns"] > 1
        for number, one in enumerate(policy.turns[attempt.id]):
            assert tokenizer.decode(one.prompt).encode() == transcript.encode()
            reply = tokenizer.decode(one.reply, skip_special_tokens=True)
            assert "\n" not in reply.rstrip("\n")
            assert one.cut == (one.reply[-1] not in ends)
            assert row["messages"][1 + 2 * number]["content"] == reply.strip()
            ended += reply.endswith("\n")
            shown = row["messages"][2 + 2 * number :][:1]
            if shown:  # the last reply is followed by nothing
                asked = " ".join(reply.split())
                lines = [f"{asked} {answer}\n" for answer in ("Yes.", "No.", "Invalid Question.")]
                assert shown[0]["content"] in [transcript + line for line in lines]
                transcript = shown[0]["content"]
    assert ended > 3


def test_a_prompt_without_room_for_a_reply_is_refused(folder: Path) -> None:
    async def ask() -> None:
        policy = live(folder)
        async with policy.acting():
            await policy.reply([{"role": "user", "content": "word " * CONTEXT}], 1, "a")

    with pytest.raises(ContextOverflowError, match=f"of {CONTEXT} of the model"):
        asyncio.run(ask())


@pytest.mark.parametrize("step", ["begin", "advance"])
def test_what_fails_while_drawing_reaches_every_episode(
    step: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = [{"role": "user", "content": "hello"}]

    async def ask() -> tuple[list[Any], str]:
        policy = live(folder)
        async with policy.acting():
            with monkeypatch.context() as patched:
                patched.setattr(DrawSteps, step, _broken)
                asked = [policy.reply(talk, n, str(n)) for n in range(3)]
                told = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 60)
            return told, (await policy.reply(talk, 1, "later")).text

    told, later = asyncio.run(ask())
    assert [str(each) for each in told] == ["no memory"] * 3
    assert later


def _broken(*_: object) -> bool:
    raise RuntimeError("no memory")
