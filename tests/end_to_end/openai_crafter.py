"""An agent of somebody else for test_command_equals_react.py: it plays with the official `openai`
client as it is installed, whole replies or streams, in the environment of openai_clients.lock."""

from __future__ import annotations

import itertools
import json
import os
import urllib.request
from pathlib import Path
from typing import Any

import openai


def reply_to(api: Any, messages: list[dict[str, str]], told: dict[str, Any]) -> str:
    asked = {"model": told["model"], "messages": messages}
    if not told["params"]["stream"]:
        return api.chat.completions.create(**asked).choices[0].message.content or ""
    with api.chat.completions.stream(**asked) as events:
        deltas = [event.delta for event in events if event.type == "content.delta"]
        whole = events.get_final_completion().choices[0].message.content or ""
    assert "".join(deltas) == whole
    return whole


def step(action: str) -> dict[str, Any]:
    request = urllib.request.Request(
        os.environ["AGENTC_ENVIRONMENT_URL"] + "/step",
        json.dumps({"action": action}).encode(),
        {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}",
        },
    )
    with urllib.request.urlopen(request) as answer:
        seen: dict[str, Any] = json.load(answer)
    return seen


def main() -> None:
    told = json.loads(Path(os.environ["AGENTC_EPISODE"]).read_text("utf-8"))
    messages = told["messages"]
    with openai.OpenAI() as api:  # its address and key are variables
        for _ in itertools.count():
            try:
                reply = reply_to(api, messages, told).strip()
            except openai.BadRequestError as error:
                if error.code == "turn_limit":
                    return
                raise
            seen = {"observation": told["params"]["invalid"], "done": False}
            if reply:
                seen = step(reply.splitlines()[0].strip())
            if seen["done"]:
                return
            said = told["observation_prefix"] + seen["observation"]
            messages += [
                {"role": "assistant", "content": reply},
                {"role": "user", "content": said},
            ]


if __name__ == "__main__":
    main()
