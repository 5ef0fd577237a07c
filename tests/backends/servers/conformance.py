"""What every model server must do (contracts.md, section 5), as checks over HTTP.

`CHECKS` are coroutines of a `Target`; the scripted server's tests run them here, those of the
transformers and vLLM servers in their own environments. Needs httpx2 and our client.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.patience import PATIENCE_S
from tests.support.waits import ACKNOWLEDGEMENT_S, least_wait

from agentc_backends import clients

ROOT = Path(__file__).parents[3]
CONVERSATION = [
    {"role": "system", "content": "You craft things."},
    {"role": "user", "content": "Goal: craft oak planks.\nYou see: an oak log."},
    {"role": "assistant", "content": "Thought: get the log.\nAction: get 1 oak log"},
    {"role": "user", "content": "Observation: Got 1 oak log"},
]


@dataclass(frozen=True, slots=True)
class Target:
    """A server under test. `varied`: sampling at temperature 1 gives different texts.
    `logprob_tolerance` bounds how far scoring may be from the log-probs of generation."""

    url: str
    token: str
    model: str
    root: str
    max_model_len: int
    varied: bool = True
    logprob_tolerance: float = 1e-4

    def client(self, concurrency: int = 32) -> clients.ChatClient:
        return clients.ChatClient(
            self.url,
            self.token,
            self.model,
            limits=clients.RateLimits(concurrency=concurrency),
            retry=clients.RetryPolicy(attempts=1),
        )

    async def raw(
        self, method: str, path: str, body: object = None, *, token: str | None = None
    ) -> httpx2.Response:
        bearer = self.token if token is None else token
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        content = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        async with httpx2.AsyncClient(timeout=PATIENCE_S, trust_env=False) as http:
            return await http.request(method, self.url + path, content=content, headers=headers)

    def chat_body(self, **fields: Any) -> dict[str, Any]:
        return {"model": self.model, "messages": CONVERSATION, "max_tokens": 8, **fields}


@contextmanager
def started(
    python: str,
    module: str,
    arguments: Sequence[str],
    folder: Path,
    *,
    variables: Mapping[str, str] | None = None,
    token: str = "test-token",
    timeout_s: float = PATIENCE_S,
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server program as the runtime starts it; yields its URL and process, and ends it."""
    ready = folder / "ready.json"
    log = folder / "server.log"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends")),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "AGENTC_TOKEN": token,
        **(variables or {}),
    }
    command = [python, "-m", module, "--ready-file", str(ready), *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=environment, stdout=out, stderr=out, cwd=folder, start_new_session=True
        )
        try:
            deadline = time.monotonic() + timeout_s
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"the server did not start:\n{log.read_text()[-4000:]}")
                time.sleep(0.05)
            address = json.loads(ready.read_text())
            yield f"http://{address['host']}:{address['port']}", process
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


async def health_is_open(target: Target) -> None:
    assert (await target.raw("GET", "/health", token="")).status_code == 200


async def other_routes_demand_the_token(target: Target) -> None:
    routes = [("GET", "/v1/models", None), ("POST", "/v1/chat/completions", target.chat_body())]
    routes += [("POST", "/v1/completions", {"model": target.model, "prompt": "a"})]
    routes += [("POST", "/tokenize", {"model": target.model, "prompt": "a"})]
    for method, path, body in routes:
        for offered in ("", "wrong"):
            answer = await target.raw(method, path, body, token=offered)
            assert answer.status_code == 401, (path, offered, answer.text)


async def a_key_may_name_a_session(target: Target) -> None:
    answer = await target.raw("GET", "/v1/models", token=f"{target.token}:episode-3.1")
    assert answer.status_code == 200
    assert answer.headers["x-agentc-session"] == "episode-3.1"
    assert "x-agentc-session" not in (await target.raw("GET", "/v1/models")).headers
    for wrong in (f"{target.token}:", f"{target.token}x", f"{target.token}:a b", "x:episode"):
        assert (await target.raw("GET", "/v1/models", token=wrong)).status_code == 401, wrong


async def models_names_the_model_and_its_root(target: Target) -> None:
    async with target.client() as chat:
        (entry,) = await chat.models()
    assert entry["id"] == target.model
    assert os.path.realpath(entry["root"]) == os.path.realpath(target.root)


async def replies_wait_for_no_acknowledgement(target: Target) -> None:
    headers = {"Authorization": f"Bearer {target.token}"}
    wait = await asyncio.to_thread(least_wait, target.url, "/v1/models", headers)
    assert wait < ACKNOWLEDGEMENT_S * 3 / 4


async def chat_replies_within_the_limit(target: Target) -> None:
    async with target.client() as chat:
        reply = await chat.chat(CONVERSATION, temperature=1.0, seed=1, max_tokens=5)
        prompt = await chat.tokenize(CONVERSATION)
    assert 1 <= reply.completion_tokens <= 5
    assert reply.finish_reason in ("stop", "length")
    assert reply.prompt_tokens == len(prompt)
    assert reply.logprobs is None


async def greedy_is_repeatable(target: Target) -> None:
    async with target.client() as chat:
        texts = {
            (await chat.chat(CONVERSATION, temperature=0.0, max_tokens=12)).text for _ in range(2)
        }
    assert len(texts) == 1


async def seeds_decide(target: Target) -> None:
    async with target.client() as chat:
        drawn = [
            (await chat.chat(CONVERSATION, temperature=1.0, seed=seed, max_tokens=12)).text
            for seed in (1, 1, 2, 3)
        ]
    assert drawn[0] == drawn[1]
    if target.varied:
        assert len(set(drawn)) == 3


async def seeds_decide_whatever_runs_beside(target: Target) -> None:
    """Alone, all at once, and in the opposite order among others of other lengths."""

    async def reply(chat: clients.ChatClient, seed: int) -> str:
        turns = CONVERSATION[: 2 + 2 * (seed % 2)]
        answer = await chat.chat(
            turns, temperature=0.8, top_p=0.9, seed=seed, max_tokens=10 + seed % 5
        )
        return answer.text

    seeds = list(range(12))
    async with target.client() as chat:
        alone = [await reply(chat, seed) for seed in seeds]
        together = await asyncio.gather(*(reply(chat, seed) for seed in seeds))
        backwards = await asyncio.gather(*(reply(chat, seed) for seed in [*seeds[::-1], 40, 41]))
    assert alone == list(together)
    assert alone == list(backwards)[11::-1]


async def several_choices(target: Target) -> None:
    body = target.chat_body(n=3, seed=5, temperature=1.0)
    first = (await target.raw("POST", "/v1/chat/completions", body)).json()
    again = (await target.raw("POST", "/v1/chat/completions", body)).json()
    assert [choice["index"] for choice in first["choices"]] == [0, 1, 2]
    texts = [choice["message"]["content"] for choice in first["choices"]]
    assert texts == [choice["message"]["content"] for choice in again["choices"]]
    if target.varied:
        assert len(set(texts)) > 1


async def completions_take_text_and_token_ids(target: Target) -> None:
    async with target.client() as chat:
        ids = await chat.tokenize("Goal: craft")
        by_text = await chat.complete("Goal: craft", temperature=0.0, max_tokens=6)
        by_ids = await chat.complete(ids, temperature=0.0, max_tokens=6)
    assert by_text.text == by_ids.text
    assert by_text.prompt_tokens == len(ids)


async def generated_tokens_have_logprobs(target: Target) -> None:
    async with target.client() as chat:
        reply = await chat.chat(CONVERSATION, temperature=1.0, seed=3, max_tokens=6, logprobs=True)
        completed = await chat.complete(
            "Goal:", temperature=1.0, seed=3, max_tokens=6, logprobs=True
        )
    for answer in (reply, completed):
        assert answer.logprobs is not None
        assert len(answer.logprobs) == answer.completion_tokens
        assert all(s.logprob is not None and s.logprob <= 1e-6 for s in answer.logprobs)


async def scoring_agrees_with_generation(target: Target) -> None:
    async with target.client() as chat:
        prompt = await chat.tokenize("Goal: craft oak planks")
        body = {"model": target.model, "prompt": prompt, "max_tokens": 8, "temperature": 1.0}
        body |= {"seed": 11, "logprobs": 0, "return_token_ids": True}
        answer = (await target.raw("POST", "/v1/completions", body)).json()
        (choice,) = answer["choices"]
        scores = await chat.score([*prompt, *choice["token_ids"]])
    assert len(scores) == len(prompt) + len(choice["token_ids"])
    assert scores[0].logprob is None
    said = choice["logprobs"]["token_logprobs"]
    found = [score.logprob for score in scores[len(prompt) :]]
    assert found == pytest.approx(said, abs=target.logprob_tolerance)


async def stop_texts_end_and_are_cut_off(target: Target) -> None:
    async with target.client() as chat:
        whole = await chat.complete("Goal: craft", temperature=0.0, max_tokens=24)
        middle = len(whole.text) // 2
        stop = whole.text[middle : middle + 2]
        assert stop, "the server's greedy text is too short for this check"
        cut = await chat.complete("Goal: craft", temperature=0.0, max_tokens=24, stop=[stop, "§"])
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish_reason == "stop"
    assert cut.completion_tokens <= whole.completion_tokens


async def overflow_is_told_apart(target: Target) -> None:
    long = [{"role": "user", "content": "oak planks and sticks " * target.max_model_len}]
    async with target.client() as chat:
        with pytest.raises(clients.ContextOverflowError):
            await chat.chat(long, max_tokens=4)
        with pytest.raises(clients.ContextOverflowError):
            await chat.complete(await _full_prompt(chat, target), max_tokens=1)
        body = {"ignore_eos": True}
        cut = await chat.complete(
            "Goal", max_tokens=target.max_model_len, extra=body, temperature=0.0
        )
        assert cut.finish_reason == "length"
        # vLLM stops one token short of the context.
        assert target.max_model_len - 1 <= cut.prompt_tokens + cut.completion_tokens
        assert cut.prompt_tokens + cut.completion_tokens <= target.max_model_len


async def _full_prompt(chat: clients.ChatClient, target: Target) -> list[int]:
    some = await chat.tokenize("oak planks and sticks")
    return (some * target.max_model_len)[: target.max_model_len]


async def unknown_fields_are_refused_by_name(target: Target) -> None:
    for path, body in (
        ("/v1/chat/completions", target.chat_body(best_guess=True)),
        ("/v1/completions", {"model": target.model, "prompt": "a", "best_guess": 1}),
    ):
        answer = await target.raw("POST", path, body)
        assert answer.status_code == 400, answer.text
        assert "best_guess" in answer.json()["error"]["message"]


async def unknown_models_are_not_found(target: Target) -> None:
    for path, body in (
        ("/v1/chat/completions", target.chat_body(model="other")),
        ("/v1/completions", {"model": "other", "prompt": "a"}),
    ):
        assert (await target.raw("POST", path, body)).status_code == 404, path


async def wrong_values_are_refused(target: Target) -> None:
    bodies: list[object] = [
        target.chat_body(temperature=-1),
        target.chat_body(top_p=0.0),
        target.chat_body(temperature="hot"),
        target.chat_body(n=0),
        target.chat_body(messages="hello"),
        b"{not json",
    ]
    for body in bodies:
        answer = await target.raw("POST", "/v1/chat/completions", body)
        assert answer.status_code in (400, 422), (body, answer.status_code, answer.text)
        assert "error" in answer.json()


async def half_of_a_character_is_refused(target: Target) -> None:
    """On every route, wherever it is and however it is written; a whole one is not."""
    half, whole = "cut \ud83d", "cut \U0001f600"
    routes: list[tuple[str, dict[str, Any]]] = [
        ("/v1/completions", {"model": target.model, "prompt": "TEXT", "max_tokens": 1}),
        ("/tokenize", {"model": target.model, "prompt": "TEXT"}),
        ("/v1/chat/completions", target.chat_body(stop=["TEXT"])),
        ("/v1/chat/completions",
         target.chat_body(messages=[{"role": "user", "content": "TEXT"}], max_tokens=1)),
    ]  # fmt: skip
    for path, body in routes:
        text = json.dumps(body)
        escaped, encoded = json.dumps(half)[1:-1], half.encode("utf-8", "surrogatepass")
        for wrong in (
            text.replace("TEXT", escaped).encode(),
            text.encode().replace(b"TEXT", encoded),
            text.replace("TEXT", escaped).encode("utf-16"),
        ):
            answer = await target.raw("POST", path, wrong)
            assert answer.status_code == 400, (path, wrong, answer.status_code, answer.text)
            assert "error" in answer.json()
        for right in (text.replace("TEXT", json.dumps(whole)[1:-1]), text.replace("TEXT", whole)):
            answer = await target.raw("POST", path, right.encode())
            assert answer.status_code == 200, (path, right, answer.status_code, answer.text)


async def many_at_once(target: Target) -> None:
    async with target.client(concurrency=48) as chat:
        replies = await asyncio.gather(
            *(
                chat.chat(CONVERSATION, temperature=1.0, seed=seed, max_tokens=4 + seed % 9)
                for seed in range(48)
            )
        )
    assert all(1 <= r.completion_tokens <= 4 + i % 9 for i, r in enumerate(replies))


CHECKS: tuple[Callable[[Target], Awaitable[None]], ...] = (
    health_is_open,
    other_routes_demand_the_token,
    a_key_may_name_a_session,
    models_names_the_model_and_its_root,
    replies_wait_for_no_acknowledgement,
    chat_replies_within_the_limit,
    greedy_is_repeatable,
    seeds_decide,
    seeds_decide_whatever_runs_beside,
    several_choices,
    completions_take_text_and_token_ids,
    generated_tokens_have_logprobs,
    scoring_agrees_with_generation,
    stop_texts_end_and_are_cut_off,
    overflow_is_told_apart,
    unknown_fields_are_refused_by_name,
    unknown_models_are_not_found,
    wrong_values_are_refused,
    half_of_a_character_is_refused,
    many_at_once,
)
