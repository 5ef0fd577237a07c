"""The recorder between a client and a scripted server in a process of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest
from tests.backends.recorded.cut_streams import cut_once

from agentc_backends.agents.command.play import Door, DoorEpisode
from agentc_backends.agents.common.seeds import turn_seed
from agentc_backends.agents.recording.proof import ProvedConversation, rebuild
from agentc_backends.agents.recording.recorder import Recorder, open_recorder
from agentc_backends.clients.leases import chat_client

RULES = [
    {"match": "long", "reply": "Thought: a long one, with more than the limit of letters"},
    {"turn": 0, "reply": ["Action: look", "Action: wait", "Action: go", "Action: sit"]},
    {"reply": "Action: open é"},
]
DECODE: dict[str, Any] = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 24, "stop": []}
TASK = [{"role": "user", "content": "a task"}]
Work = Callable[[Recorder, Any], Awaitable[Any]]


@pytest.fixture
def scripted(share: Any) -> Any:
    command = ["-m", "agentc_backends.servers.scripted.job_serve", "--port", "0", "--ready-file",
               "READY", "--max-model-len", "200", "--rules", json.dumps(RULES)]  # fmt: skip
    return share("policy", command, "policy-token", model="policy", log="policy.log")


def played(lease: dict[str, Any], work: Work) -> Any:
    async def playing() -> Any:
        async with (
            open_recorder(lease, DECODE, concurrency=4) as recorder,
            httpx2.AsyncClient(base_url=recorder.url, trust_env=False) as client,
        ):
            return await work(recorder, client)

    return asyncio.run(playing())


async def ask(client: Any, key: str, **body: Any) -> Any:
    return await client.post(
        "/v1/chat/completions",
        json={"model": "any", **body},
        headers={"Authorization": f"Bearer {key}"},
    )


def streamed_text(body: str) -> str:
    events = [line[6:] for line in body.splitlines() if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    choices = [choice for event in events for choice in json.loads(event)["choices"]]
    assert not any("token_ids" in choice or choice["logprobs"] for choice in choices)
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@pytest.mark.parametrize("stream", [False, True])
def test_an_episode_is_recorded_and_proved(scripted: Any, stream: bool) -> None:
    async def work(recorder: Recorder, client: Any) -> Any:
        session = recorder.open(seed=7)
        talk = list(TASK)
        for told in ("a door", "a wall"):
            answer = await ask(client, session.key, messages=talk, stream=stream, seed=99)
            assert answer.status_code == 200, answer.text
            if stream:
                reply = {"role": "assistant", "content": streamed_text(answer.text)}
            else:
                body = answer.json()
                assert "prompt_token_ids" not in body
                [choice] = body["choices"]
                assert "token_ids" not in choice
                assert choice["logprobs"] is None
                reply = choice["message"]
            talk += [reply, {"role": "user", "content": told}]
        async with chat_client(scripted.lease, concurrency=1) as server:
            alone = await server.chat(TASK, **DECODE, seed=turn_seed(7, 0))

            async def tokenize(messages: Any, *, ended: bool = True) -> list[int]:
                assert ended
                return await server.tokenize(messages, add_generation_prompt=False)

            return session, talk, alone, await rebuild(session.exchanges, tokenize)

    session, talk, alone, found = played(scripted.lease, work)
    # Drawn by the stage's seed, whatever the program says.
    assert talk[1]["content"] == alone.text
    assert isinstance(found, ProvedConversation)
    assert list(found.history.messages) == talk[:-1]
    letters = bytes(token for token, ours in zip(found.ids, found.drawn, strict=True)
                    if ours and token < 256)  # fmt: skip
    assert letters.decode() == talk[1]["content"] + talk[3]["content"]
    assert all((value is not None) == ours
               for value, ours in zip(found.logprobs, found.drawn, strict=True))  # fmt: skip
    first = session.exchanges[0]
    assert first.prompt_tokens == alone.prompt_tokens == len(first.prompt_ids or ())
    assert first.completion_tokens == alone.completion_tokens == len(first.token_ids or ())


def test_the_stage_decides_how_replies_are_drawn(scripted: Any) -> None:
    async def work(recorder: Recorder, client: Any) -> Any:
        session = recorder.open(seed=1)
        talk = [{"role": "user", "content": "long"}]
        answer = await ask(
            client, session.key, messages=talk, temperature=0.0, max_completion_tokens=500,
            logprobs=True, return_token_ids=True,
        )  # fmt: skip
        await ask(client, session.key, messages=TASK, temperature=1.0, max_tokens=24, stop=[])
        return session, answer.json()["choices"][0]

    session, choice = played(scripted.lease, work)
    assert choice["finish_reason"] == "length"
    assert len(choice["token_ids"]) == len(choice["logprobs"]["content"]) == 24
    assert session.overruled == 1


def test_a_key_opens_its_own_episode_only(scripted: Any) -> None:
    """Whatever a program makes of its key: other episodes run at the same time."""

    async def work(recorder: Recorder, client: Any) -> Any:
        sessions = [recorder.open(seed=number) for number in range(4)]
        token, _, own = sessions[1].key.rpartition(":")
        names = ["", own[:-1], own + "x", own.upper() + "-", own + ":" + own, *map(str, range(5))]
        for session in sessions:
            names += [session.name, f"{session.name}:{own}", f"{own}:{session.name}"]
        guesses = [token, *(f"{token}:{name}" for name in names)]
        statuses = [(await ask(client, key, messages=TASK)).status_code for key in guesses]
        right = (await ask(client, sessions[1].key, messages=TASK)).status_code
        return statuses, right, [len(session.exchanges) for session in sessions]

    statuses, right, recorded = played(scripted.lease, work)
    assert set(statuses) == {401}
    assert (right, recorded) == (200, [0, 1, 0, 0])


def test_half_of_a_character_is_refused_by_the_recorder_and_the_door(scripted: Any) -> None:
    """An agent's text that was cut within an emoji; the episode continues."""
    door = Door()

    async def playing() -> list[int]:
        async with (
            open_recorder(scripted.lease, DECODE, concurrency=4, routes=door.routes()) as recorder,
            httpx2.AsyncClient(base_url=recorder.url, trust_env=False) as client,
        ):
            door.recorder = recorder
            session = recorder.open(seed=1)
            world: Any = None  # never reached
            door.open(DoorEpisode(recorded=session, observation="", session=world, description={}))
            headers = {"Authorization": f"Bearer {session.key}"}
            chat = json.dumps({"model": "any", "messages": [{"role": "user", "content": "\ud83d"}]})
            statuses = []
            for path, body in (
                ("/v1/chat/completions", chat),
                ("/environment/step", json.dumps({"action": "look \ud83d"})),
                ("/environment/step", json.dumps({"action": "look", "\udc00": 1})),
            ):
                answer = await client.post(path, content=body.encode(), headers=headers)
                statuses.append(answer.status_code)
            statuses.append((await ask(client, session.key, messages=TASK)).status_code)
            assert len(session.exchanges) == 1
            return statuses

    assert asyncio.run(playing()) == [400, 400, 400, 200]


def test_keys_follow_no_order(scripted: Any) -> None:
    async def work(recorder: Recorder, client: Any) -> Any:
        return [recorder.open(seed=1).key.rpartition(":")[2] for _ in range(50)]

    secrets = played(scripted.lease, work)
    assert len(set(secrets)) == 50
    assert min(map(len, secrets)) >= 32


def test_who_asks_too_much_is_told_so(scripted: Any) -> None:
    async def work(recorder: Recorder, client: Any) -> Any:
        one, other = (recorder.open(seed=1, most_replies=1) for _ in range(2))
        statuses = []
        for key in ("no key", one.key, one.key, scripted.lease["token"]):
            statuses.append((await ask(client, key, messages=TASK)).status_code)
        recorder.close(one)
        statuses.append((await ask(client, one.key, messages=TASK)).status_code)
        talk = [{"role": "user", "content": "x" * 300}]
        for stream in (False, True):
            answer = await ask(client, other.key, messages=talk, stream=stream)
            statuses.append(answer.json()["error"]["code"])
        statuses.append((await ask(client, other.key, messages=TASK, n=2)).json()["error"]["param"])
        return one, other, statuses

    one, other, statuses = played(scripted.lease, work)
    assert statuses == [401, 200, 400, 401, 401, *["context_length_exceeded"] * 2, "n"]
    assert (len(one.exchanges), one.limited, one.overflowed) == (1, True, False)
    assert (len(other.exchanges), other.overflowed, other.failed) == (0, True, None)


def test_a_server_that_is_gone_fails_the_episode(scripted: Any) -> None:
    async def work(recorder: Recorder, client: Any) -> Any:
        session = recorder.open(seed=1)
        assert (await ask(client, session.key, messages=TASK)).status_code == 200
        assert session.failed is None
        scripted.process.kill()
        scripted.process.wait()
        answers = [await ask(client, session.key, messages=TASK, stream=s) for s in (False, True)]
        return session, [answer.status_code for answer in answers]

    session, statuses = played(scripted.lease, work)
    assert statuses == [502, 502]
    assert "the model server" in (session.failed or "")
    assert len(session.exchanges) == 1


@pytest.mark.parametrize("who", ["server", "program"])
@pytest.mark.parametrize("then", ["asks again", "continues", "ends"])
def test_a_stream_that_was_cut_off_is_no_reply(scripted: Any, who: str, then: str) -> None:
    """Whoever cut it: a program that does not ask the same again may have used half of it."""

    async def half(client: Any, key: str, talk: Any) -> str:
        headers = {"Authorization": f"Bearer {key}"}
        body = {"model": "any", "messages": talk, "stream": True}
        lines: list[str] = []
        async with client.stream(
            "POST", "/v1/chat/completions", json=body, headers=headers
        ) as answer:
            async for line in answer.aiter_lines():
                lines.append(line)
                if who == "program" and sum(map(bool, lines)) == 3:
                    break
        if who == "server":
            assert "bad_gateway" in lines[-4]
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")][:3]
        return "".join(event["choices"][0]["delta"].get("content") or "" for event in events)

    async def work() -> Any:
        async with (
            cut_once(scripted.lease["url"], close=who == "server") as url,
            open_recorder({**scripted.lease, "url": url}, DECODE, concurrency=4) as recorder,
            httpx2.AsyncClient(base_url=recorder.url, trust_env=False) as client,
        ):
            session = recorder.open(seed=7)
            said = await half(client, session.key, TASK)
            assert 0 < len(said) < len("Action: go")
            talk = list(TASK)
            if then == "continues":
                talk += [{"role": "assistant", "content": said}, {"role": "user", "content": "so"}]
            if then != "ends":
                answer = await ask(client, session.key, messages=talk, stream=True)
                assert streamed_text(answer.text)
            return session

    session = asyncio.run(work())
    assert len(session.exchanges) == (then != "ends")
    again = then == "asks again"
    assert session.cut_off == ([] if again else [tuple(TASK)])
    assert (session.failed is not None) == (who == "server" and not again)
