"""An agent of somebody else: it plays an episode with the standard library alone, as rollout.react
would. `fault` in its params plants what a harness may do to its history."""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

INVALID = "Invalid format."


def post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        url,
        json.dumps(body).encode(),
        {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}",
        },
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def reply_to(messages: list[dict[str, str]], model: str) -> str:
    body = {"model": model, "messages": messages}
    answer = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
    return str(answer["choices"][0]["message"]["content"])


def half_of_reply_to(messages: list[dict[str, str]], model: str) -> str:
    """What the first line of a reply holds that is more than its role, the rest unread."""
    body = {"model": model, "messages": messages, "stream": True}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}",
        },
    )
    with urllib.request.urlopen(request) as answer:
        for line in answer:
            event = json.loads(line[6:]) if line.startswith(b"data: {") else {"choices": []}
            for choice in event["choices"]:
                if choice["delta"].get("content"):
                    return str(choice["delta"]["content"])
    raise ValueError("an empty reply")


def planted(messages: list[dict[str, str]], fault: str, turn: int) -> list[dict[str, str]]:
    """The history as a careless harness would send it."""
    if turn == 0 or fault in ("", "greedy", "half"):
        return messages
    if fault == "summary":
        return [{"role": "user", "content": f"So far {turn} turns. {messages[-1]['content']}"}]
    if fault == "edit":
        return [{**messages[0], "content": messages[0]["content"] + "!"}, *messages[1:]]
    if fault == "padding":  # other tokens of the same words
        place = max(i for i, m in enumerate(messages) if m["role"] == "assistant")
        padded = {**messages[place], "content": messages[place]["content"] + " "}
        return [*messages[:place], padded, *messages[place + 1 :]]
    raise ValueError(fault)


def main() -> None:
    told = json.loads(Path(os.environ["AGENTC_EPISODE"]).read_text("utf-8"))
    assert sys.argv[1:] in ([os.environ["AGENTC_EPISODE"]], ["by-command"])
    fault, prefix = told["params"].get("fault", ""), told["observation_prefix"]
    if fault == "crash":
        raise SystemExit("planted: no agent today")
    messages = told["messages"]
    for turn in itertools.count():
        try:
            ask = half_of_reply_to if fault == "half" and turn == 0 else reply_to
            reply = ask(planted(messages, fault, turn), told["model"])
        except urllib.error.HTTPError as error:
            code = json.load(error)["error"]["code"]
            if code == "turn_limit" and fault != "greedy":
                return
            raise SystemExit(f"refused: {code}") from error
        messages.append({"role": "assistant", "content": reply})
        action = re.search(r"^Action:(.*)", reply, re.MULTILINE)
        if action is None:
            seen, done = INVALID, False
        else:
            body = {"action": action.group(1).strip()}
            step = post(os.environ["AGENTC_ENVIRONMENT_URL"] + "/step", body)
            assert set(step) == {"observation", "done"}
            seen, done = step["observation"], step["done"]
        if done:
            return
        messages.append({"role": "user", "content": prefix + seen})


if __name__ == "__main__":
    main()
