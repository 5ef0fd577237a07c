"""Plays with clients of others, unmodified, against a server: the official `openai` client and the
OpenAI Agents SDK. Run in the environment of openai_clients.lock by `test_openai_clients.py`.

In: JSON with url, key, model and `prompts` on standard input. Out: what was seen, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Literal

import agents
import openai
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel

PARAMETERS = {
    "type": "object",
    "properties": {"item": {"enum": ["oak log", "stick"]}},
    "required": ["item"],
    "additionalProperties": False,
}
GET = {"type": "function", "function": {"name": "get", "parameters": PARAMETERS}}
DECIDED: dict[str, Any] = {"temperature": 1.0, "seed": 5}


def main() -> None:
    asked = json.load(sys.stdin)
    agents.set_tracing_disabled(True)
    with openai.OpenAI(base_url=asked["url"] + "/v1", api_key=asked["key"], max_retries=0) as api:
        seen = {name: play(api, asked) for name, play in PLAYS.items()}
    seen["agent"] = asyncio.run(agent(asked, streamed=False))
    seen["streamed_agent"] = asyncio.run(agent(asked, streamed=True))
    json.dump(seen, sys.stdout)


def text(api: openai.OpenAI, asked: dict[str, Any]) -> Any:
    """The same reply whole, by events, and by the client's own helper for events."""
    body = {"model": asked["model"], "messages": asked["text"], "max_tokens": 30, **DECIDED}
    whole = api.chat.completions.create(**body, logprobs=True)
    usage = {"include_usage": True}
    events = list(
        api.chat.completions.create(**body, logprobs=True, stream=True, stream_options=usage)
    )
    parts = [choice for event in events for choice in event.choices]
    with api.chat.completions.stream(**body) as stream:
        helped = [event.delta for event in stream if event.type == "content.delta"]
    scores = [s for part in parts if part.logprobs for s in part.logprobs.content or ()]
    assert whole.choices[0].logprobs is not None
    return {
        "whole": whole.choices[0].message.content,
        "streamed": "".join(part.delta.content or "" for part in parts),
        "helped": "".join(helped),
        "scores": [s.logprob for s in whole.choices[0].logprobs.content or ()],
        "streamed_scores": [s.logprob for s in scores],
        "usage": [whole.usage.model_dump(), events[-1].usage.model_dump()],
        "events": len(events),
    }


def completion(api: openai.OpenAI, asked: dict[str, Any]) -> Any:
    body = {"model": asked["model"], "prompt": "Goal: craft", "max_tokens": 12, **DECIDED}
    whole = api.completions.create(**body).choices[0].text
    events = api.completions.create(**body, stream=True)
    return [whole, "".join(part.text for event in events for part in event.choices)]


def tools(api: openai.OpenAI, asked: dict[str, Any]) -> Any:
    """A call, whole and streamed; then a request with its result. vLLM holds arguments to their
    schema where a function is strict, and nowhere else."""
    strict = {"strict": True} if asked["strict"] else {}
    get: Any = {**GET, "function": {**GET["function"], **strict}}
    body = {"model": asked["model"], "messages": asked["tools"], "max_tokens": 120,
            "tools": [get], **asked["demand"], **DECIDED}  # fmt: skip
    whole = api.chat.completions.create(**body).choices[0]
    with api.chat.completions.stream(**body) as stream:
        streamed = stream.get_final_completion().choices[0]
    calls = whole.message.tool_calls or []
    results = [{"role": "tool", "tool_call_id": call.id, "content": "Got it"} for call in calls]
    talk = [*asked["tools"], whole.message.to_dict(), *results]
    after = api.chat.completions.create(
        model=asked["model"], messages=talk, tools=[get], max_tokens=20, **DECIDED
    )
    return {
        "reasons": [whole.finish_reason, streamed.finish_reason],
        "calls": [[c.function.name, c.function.arguments] for c in calls],
        "streamed": [
            [c.function.name, c.function.arguments] for c in streamed.message.tool_calls or []
        ],
        "after": after.choices[0].message.content,
    }


def errors(api: openai.OpenAI, asked: dict[str, Any]) -> Any:
    talk: Any = asked["text"]
    wrong = [
        (api, {"temperature": -1.0}),
        (api, {"extra_body": {"best_guess": 1}}),
        (api, {"model": "other"}),
        (api.with_options(api_key="stranger"), {}),
    ]
    names = []
    for client, fields in wrong:
        for streamed in (False, True):
            body: dict[str, Any] = {"model": asked["model"], "messages": talk, **fields}
            try:
                client.chat.completions.create(**body, stream=streamed)
                names.append("none")
            except openai.APIStatusError as error:
                names.append(type(error).__name__)
    return names


def session(api: openai.OpenAI, asked: dict[str, Any]) -> Any:
    keyed = api.with_options(api_key=asked["key"] + ":episode-7")
    answer = keyed.chat.completions.with_raw_response.create(
        model=asked["model"], messages=asked["text"], max_tokens=2
    )
    return answer.headers.get("x-agentc-session")


PLAYS = {"text": text, "completion": completion, "tools": tools, "errors": errors,
         "session": session}  # fmt: skip


async def agent(asked: dict[str, Any], *, streamed: bool) -> Any:
    """An agent of the SDK with one function, which goes on until a reply calls nothing."""
    called: list[str] = []

    @agents.function_tool(strict_mode=asked["strict"])
    def get(item: Literal["oak log", "stick"]) -> str:
        """Get a thing."""
        called.append(item)
        return f"Got {item}"

    api = openai.AsyncOpenAI(base_url=asked["url"] + "/v1", api_key=asked["key"], max_retries=0)
    player = agents.Agent(
        name="crafter",
        instructions="You craft things.",
        model=OpenAIChatCompletionsModel(asked["model"], openai_client=api),
        model_settings=agents.ModelSettings(
            temperature=1.0, max_tokens=120, extra_body={"seed": 5}, **asked["agent"]
        ),
        tools=[get],
    )
    deltas = 0
    if streamed:
        result: Any = agents.Runner.run_streamed(player, asked["goal"], max_turns=3)
        async for event in result.stream_events():
            deltas += event.type == "raw_response_event"
    else:
        result = await agents.Runner.run(player, asked["goal"], max_turns=3)
    await api.close()
    kinds = [type(item).__name__ for item in result.new_items]
    return {"called": called, "said": result.final_output, "kinds": kinds, "deltas": deltas}


if __name__ == "__main__":
    main()
