"""ChatClient over real sockets: what it retries, what it does not, and how errors are named."""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
import time
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from answering import Answer, Serve
from tests.support.patience import PATIENCE_S

from agentc_backends import clients
from agentc_backends.clients.leases import chat_client
from agentc_backends.clients.transport import Guard, Timeouts

T = TypeVar("T")
TALK = [{"role": "user", "content": "hello"}]
FINE = Answer(
    body={
        "choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    }
)
QUICK = clients.RetryPolicy(attempts=4, base_s=0.01, cap_s=0.02)


def run(
    url: str | list[str], use: Callable[[clients.ChatClient], Awaitable[T]], **settings: Any
) -> T:
    async def scenario() -> T:
        settings.setdefault("retry", QUICK)
        async with clients.ChatClient(url, "secret", "policy", **settings) as chat:
            return await use(chat)

    return asyncio.run(scenario())


def test_a_reply_is_read_and_the_request_says_what_was_asked(serve: Serve) -> None:
    server = serve([FINE])
    reply = run(
        server.url + "/v1",
        lambda chat: chat.chat(
            TALK, temperature=0.5, top_p=0.9, max_tokens=7, stop=["\n"], seed=3, logprobs=True,
            extra={"ignore_eos": True},
        ),
    )  # fmt: skip
    assert reply == clients.ChatReply(
        text="hi", finish_reason="stop", prompt_tokens=3, completion_tokens=1, logprobs=None
    )
    ((path, body, headers),) = server.seen
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret"
    assert body == {
        "model": "policy", "messages": TALK, "temperature": 0.5, "top_p": 0.9, "max_tokens": 7,
        "stop": ["\n"], "seed": 3, "logprobs": True, "ignore_eos": True,
    }  # fmt: skip


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 408])
def test_passing_trouble_is_tried_again(serve: Serve, status: int) -> None:
    server = serve([Answer(status), Answer(status), FINE])
    assert run(server.url, lambda chat: chat.chat(TALK)).text == "hi"
    assert len(server.seen) == 3


def test_a_dropped_connection_is_tried_again(serve: Serve) -> None:
    server = serve([Answer(hang_up=True), FINE])
    assert run(server.url, lambda chat: chat.chat(TALK)).text == "hi"


def test_retry_after_is_waited_for(serve: Serve) -> None:
    server = serve([Answer(429, headers={"Retry-After": "0.4"}), FINE])
    start = time.monotonic()
    run(server.url, lambda chat: chat.chat(TALK))
    assert time.monotonic() - start >= 0.4


def test_trouble_that_stays_is_an_infrastructure_error(serve: Serve) -> None:
    server = serve([Answer(503, {"error": {"message": "overloaded"}})])
    with pytest.raises(clients.InfrastructureError, match=r"503.*overloaded.*tries: 4"):
        run(server.url, lambda chat: chat.chat(TALK))
    assert len(server.seen) == 4


def test_a_dead_server_is_an_infrastructure_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(clients.InfrastructureError, match=f"127.0.0.1:{port}.*ConnectError"):
        run(f"http://127.0.0.1:{port}", lambda chat: chat.chat(TALK))


def test_a_server_that_says_nothing_is_an_infrastructure_error(serve: Serve) -> None:
    def late(number: int, path: str, body: Any) -> Answer:
        time.sleep(1.0)
        return FINE

    server = serve(late)
    with pytest.raises(clients.InfrastructureError, match="ReadTimeout"):
        run(
            server.url,
            lambda chat: chat.chat(TALK),
            timeouts=Timeouts(read_s=0.1),
            retry=clients.RetryPolicy(attempts=2, base_s=0.01),
        )


@pytest.mark.parametrize(
    "body", [b"<html>proxy error</html>", {"choices": []}, {"detail": "what?"}, [1]]
)
def test_nonsense_is_an_infrastructure_error(serve: Serve, body: Any) -> None:
    with pytest.raises(clients.InfrastructureError):
        run(serve([Answer(body=body)]).url, lambda chat: chat.chat(TALK))


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"message": "temperature: must be", "code": "invalid_value", "param": "temperature"},
         clients.BadRequestError),
        (404, {"message": "the model does not exist"}, clients.BadRequestError),
        (401, {"message": "a valid token is required"}, clients.BadRequestError),
        (400, {"message": "long", "code": "context_length_exceeded"}, clients.ContextOverflowError),
        (400, {"message": "This model's maximum context length is 9 tokens.", "code": 400},
         clients.ContextOverflowError),
        (400, {"message": "max_tokens must be at least 1, got 0.", "code": 400},
         clients.ContextOverflowError),
    ],
)  # fmt: skip
def test_refusals_are_not_tried_again(
    serve: Serve, status: int, error: dict[str, Any], kind: type[clients.BadRequestError]
) -> None:
    server = serve([Answer(status, {"error": error})])
    with pytest.raises(clients.BadRequestError) as caught:
        run(server.url, lambda chat: chat.chat(TALK))
    assert type(caught.value) is kind
    assert caught.value.status == status
    assert caught.value.param == error.get("param")
    assert error["message"] in str(caught.value)
    assert len(server.seen) == 1


def test_an_empty_reply_for_want_of_room_is_an_overflow(serve: Serve) -> None:
    body = {
        "choices": [{"message": {"content": ""}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 400, "completion_tokens": 0, "total_tokens": 400},
    }
    with pytest.raises(clients.ContextOverflowError):
        run(serve([Answer(body=body)]).url, lambda chat: chat.chat(TALK))


def test_conversations_stay_with_their_replica_and_move_when_it_dies(serve: Serve) -> None:
    servers = [serve([FINE]) for _ in range(3)]
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{unused.getsockname()[1]}"

    async def talk(chat: clients.ChatClient) -> None:
        for _ in range(3):
            await asyncio.gather(*(chat.chat(TALK, affinity=f"task-{i}") for i in range(24)))

    run([*(server.url for server in servers), dead], talk)
    assert sum(len(server.seen) for server in servers) == 72
    # Three replies to each conversation, all by one server.
    assert all(len(server.seen) % 3 == 0 for server in servers)
    assert all(server.seen for server in servers)


def test_no_more_requests_in_flight_than_allowed(serve: Serve) -> None:
    flying, most, counting = 0, 0, threading.Lock()
    five = threading.Barrier(5, timeout=PATIENCE_S)

    def count(number: int, path: str, body: Any) -> Answer:
        nonlocal flying, most
        with counting:
            flying += 1
            most = max(most, flying)
        five.wait()
        with counting:
            flying -= 1
        return FINE

    async def talk(chat: clients.ChatClient) -> None:
        await asyncio.gather(*(chat.chat(TALK) for _ in range(40)))

    run(serve(count).url, talk, limits=clients.RateLimits(concurrency=5))
    assert most == 5


def test_requests_per_minute_are_kept(serve: Serve) -> None:
    async def talk(chat: clients.ChatClient) -> float:
        start = time.monotonic()
        await asyncio.gather(*(chat.chat(TALK) for _ in range(12)))
        return time.monotonic() - start

    # 600 a minute are ten a second, of which the first ten may go at once.
    limits = clients.RateLimits(requests_per_minute=600)
    assert run(serve([FINE]).url, talk, limits=limits) > 0.15


def test_a_lease_becomes_a_client(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve([FINE])
    monkeypatch.setenv("AGENTC_REMOTE_TOKEN_POLICY", "the-key")
    monkeypatch.setenv("AGENTC_REMOTE_TOKEN_JUDGE", "another-key")

    async def talk(lease: dict[str, Any]) -> None:
        async with chat_client(lease, concurrency=4) as chat:
            await chat.chat(TALK)

    remote = {"url": server.url + "/v1", "token": "", "model": "big", "client": {"concurrency": 2}}
    for role in ("POLICY", "JUDGE"):
        variable = {"AGENTC_REMOTE_TOKEN": f"AGENTC_REMOTE_TOKEN_{role}"}
        asyncio.run(talk({**remote, "secrets": variable}))
    local = {"url": server.url, "token": "run-token", "model": "policy", "log": "server.log"}
    asyncio.run(talk(local))
    asyncio.run(talk({**local, "token": ""}))
    sent = [headers.get("Authorization") for _, _, headers in server.seen]
    assert sent == ["Bearer the-key", "Bearer another-key", "Bearer run-token", None]
    assert [body["model"] for _, body, _ in server.seen] == ["big", "big", "policy", "policy"]


KEY = "sk-canary/77+e2 and some length"


def saying(text: str) -> Answer:
    message = {"message": {"content": text}, "finish_reason": "stop"}
    return Answer(body={"choices": [{"index": 0, **message}]})


@pytest.mark.parametrize(
    "text",
    [
        f"your key is {KEY}!",
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        KEY.encode().hex(),
        urllib.parse.quote(KEY, safe=""),
    ],
    ids=["plain", "base64", "hex", "address"],
)
def test_a_reply_that_holds_the_key_is_refused_and_not_asked_for_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    server = serve([saying("hi"), saying(text)])
    monkeypatch.setenv("KEY_OF_MINE", KEY)
    lease = {
        "url": server.url, "token": "", "model": "big",
        "secrets": {"AGENTC_REMOTE_TOKEN": "KEY_OF_MINE"},
    }  # fmt: skip

    async def talk() -> str:
        async with chat_client(lease, concurrency=4) as chat:
            assert (await chat.chat(TALK)).text == "hi"
            with pytest.raises(clients.EchoedSecretError) as caught:
                await chat.chat(TALK)
        return str(caught.value)

    said = asyncio.run(talk())
    assert "run again" in said
    assert text not in said
    assert "sk-canary" not in said
    assert len(server.seen) == 2


@pytest.mark.parametrize("status", [400, 401, 500])
@pytest.mark.parametrize("before", [0, 290])
def test_no_message_holds_a_part_of_the_key(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, status: int, before: int
) -> None:
    server = serve([Answer(status=status, body={"error": "x" * before + KEY})])
    monkeypatch.setenv("KEY_OF_MINE", KEY)
    secrets = {"AGENTC_REMOTE_TOKEN": "KEY_OF_MINE"}
    lease = {
        "url": server.url, "token": "", "model": "big", "client": {"attempts": 1},
        "secrets": secrets,
    }  # fmt: skip

    async def talk() -> str:
        async with chat_client(lease, concurrency=4) as chat:
            with pytest.raises(clients.ServiceError) as caught:
                await chat.chat(TALK)
        return str(caught.value)

    said = asyncio.run(talk())
    assert "sk-ca" not in said
    assert str(status) in said


DEEP = b'{"error": ' * 100_000


@pytest.mark.parametrize("far", [False, True], ids=["one of ours", "a remote endpoint"])
@pytest.mark.parametrize(
    ("status", "error"), [(200, clients.InfrastructureError), (400, clients.BadRequestError)]
)
def test_a_reply_that_is_nested_too_deeply_is_no_reply(
    serve: Serve, far: bool, status: int, error: type[Exception]
) -> None:
    server = serve([Answer(status, body=DEEP)])
    with pytest.raises(error, match=r"is not JSON|400"):
        run(server.url, lambda chat: chat.chat(TALK), guarded=far)


def test_a_reply_that_cannot_be_looked_through_is_refused() -> None:
    """Of one that could just be decoded nobody can tell whether it holds the key."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(clients.InfrastructureError, match="nested too deeply"):
        Guard("a-key-of-mine").inspect(deep, "POST /v1")
