"""Runs the released Agent-R search on our servers: `python released_search.py SETTINGS.json`, in a
copy of its checkout. Nothing of it is changed; what it imports and is not here is stood in for.

Settings: `environment` and `policy` (`url`, `token`, `model`), `instruction`, `max_tokens`, `stop`,
`seed`, `tie_seed`, `tasks` ({index: task id}), `counts` (where to write the numbers of requests).
Stand-ins keep one connection open to each server, where the released clients open one for each
request. Sampling and ties get the seeds that our search derives, so that both grow the same trees.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import random
import runpy
import sys
import time
import types
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentc_backends.agents.common.prompts import OBSERVATION_PREFIX, observation_message
from agentc_backends.agents.common.seeds import child_seed, tree_seed

OPENING = 3
"""Messages before the first reply; what the environment says later is an observation."""


class Server:
    """Requests to one server, counted."""

    def __init__(self, lease: dict[str, Any]) -> None:
        parts = urlsplit(lease["url"])
        assert parts.hostname is not None
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port)
        self._headers = {"Content-Type": "application/json"}
        if lease.get("token"):
            self._headers["Authorization"] = f"Bearer {lease['token']}"
        self.calls = 0

    def post(self, path: str, body: dict[str, Any]) -> Any:
        self.calls += 1
        self._connection.request("POST", path, json.dumps(body), self._headers)
        with self._connection.getresponse() as answer:
            text = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{path}: {answer.status}: {text[:300]!r}")
        return json.loads(text)


class Seeds:
    """Which child of which node is being sampled, in the numbering of our trees."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._tree = 0
        self._numbers: dict[int, int] = {}
        self._node = 0
        self._child = 0

    def begin(self, task_id: str) -> None:
        self._tree = tree_seed(self._settings["seed"], task_id)
        self._numbers = {}
        random.seed(tree_seed(self._settings["tie_seed"], task_id))

    def expanding(self, node: Any) -> None:
        # The root is numbered by the first call; children once they were kept.
        self._node = self._numbers.setdefault(id(node), len(self._numbers))
        self._child = 0

    def expanded(self, node: Any) -> None:
        for child in node.children:
            self._numbers.setdefault(id(child), len(self._numbers))

    def next(self) -> int:
        self._child += 1
        return child_seed(self._tree, self._node, self._child - 1)


class Conversation:
    """What the search uses of FastChat's conversation, laid out as our prompts are."""

    def __init__(self) -> None:
        self.roles = ("user", "assistant")
        self.messages: list[list[Any]] = []

    def append_message(self, role: str, text: str | None) -> None:
        self.messages.append([role, text])

    def update_last_message(self, text: str) -> None:
        self.messages[-1][1] = text

    def to_openai_api_messages(self) -> list[dict[str, Any]]:
        return [
            observation_message(OBSERVATION_PREFIX, text)
            if role == "user" and number >= OPENING
            else {"role": role, "content": text}
            for number, (role, text) in enumerate(self.messages)
        ]


@dataclasses.dataclass
class StepOutput:
    """As in AgentGym's client."""

    state: str
    reward: float
    done: bool


def stand_in(name: str, **members: Any) -> None:
    """Put a module, and the packages above it, where imports find them."""
    parts = name.split(".")
    for length in range(1, len(parts)):
        sys.modules.setdefault(".".join(parts[:length]), types.ModuleType(parts[length - 1]))
    module = types.ModuleType(parts[-1])
    vars(module).update(members)
    sys.modules[name] = module


def stand_in_for_all(
    settings: dict[str, Any], environment: Server, policy: Server, seeds: Seeds
) -> None:
    class Sampling:
        def __init__(self, temperature: float, max_tokens: int, stop: list[str]) -> None:
            self.temperature = temperature

    class Model:
        def __init__(self, **_: Any) -> None:
            pass

        def chat(self, messages: list[dict[str, Any]], sampling_params: Sampling) -> Any:
            body = {
                "model": settings["policy"]["model"],
                "messages": messages,
                "temperature": sampling_params.temperature,
                "top_p": 1.0,
                "max_tokens": settings["max_tokens"],
                "seed": seeds.next(),
            }
            if settings["stop"]:
                body["stop"] = settings["stop"]
            answer = policy.post("/v1/chat/completions", body)
            text = answer["choices"][0]["message"]["content"]
            return [types.SimpleNamespace(outputs=[types.SimpleNamespace(text=text)])]

    class Tokenizer:
        @classmethod
        def from_pretrained(cls, _: str) -> Tokenizer:
            return cls()

        def encode(self, text: str) -> range:
            return range(len(text) // 4)  # only its length is looked at

    class Client:
        def __init__(self, env_server_base: str, data_len: int) -> None:
            self.conversation_start = ({"value": settings["instruction"]},)
            self._id = environment.post("/create", {})["id"]
            self.info: dict[str, Any] = {}

        def reset(self, index: int) -> None:
            self.info = environment.post("/reset", {"id": self._id, "data_idx": index})

        def step(self, action: str) -> StepOutput:
            found = environment.post("/step", {"id": self._id, "action": action})
            return StepOutput(found["observation"], found["reward"], found["done"])

    def dump(value: Any, path: str, **how: Any) -> None:
        Path(path).write_text(json.dumps(value, **how), encoding="utf-8")

    def load(path: str) -> Any:
        return json.loads(Path(path).read_text(encoding="utf-8"))

    stand_in("fastchat.model.model_adapter", get_conversation_template=lambda _: Conversation())
    names = ("WebshopEnvClient", "SciworldEnvClient", "TextCraftEnvClient")
    stand_in("agentenv.envs", **dict.fromkeys(names, Client))
    stand_in("mmengine", dump=dump, load=load)
    stand_in("vllm", LLM=Model, SamplingParams=Sampling)
    stand_in("transformers", AutoTokenizer=Tokenizer)
    for name in ("openai", "tiktoken", "numpy"):
        stand_in(name)


def watch(search: Any, tasks: dict[str, str], seeds: Seeds) -> None:
    """Tell `seeds` what the search is at; the search itself stays as it is."""
    begin, expand = search.search, search.expand

    def watched_search(self: Any, env: Any, conv: Any, recent: Any) -> Any:
        seeds.begin(tasks[str(self.idx)])
        return begin(self, env, conv, recent)

    def watched_expand(self: Any, node: Any) -> None:
        if not node.children:
            seeds.expanding(node)
        expand(self, node)
        seeds.expanded(node)

    search.search, search.expand = watched_search, watched_expand


def main() -> int:
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    environment, policy = Server(settings["environment"]), Server(settings["policy"])
    seeds = Seeds(settings)
    stand_in_for_all(settings, environment, policy, seeds)
    sys.path.insert(0, str(Path.cwd()))
    from mcts_utils.textcraft.mcts_tc import ExtendedMCTS

    watch(ExtendedMCTS, settings["tasks"], seeds)
    sys.argv = ["mcts_collection.py", "--model_name", "released", "--min", "0", "--max", "1000"]
    began = time.perf_counter()
    runpy.run_path("mcts_collection.py", run_name="__main__")
    counts = {
        "environment_calls": environment.calls,
        "model_calls": policy.calls,
        "wall_s": time.perf_counter() - began,
    }
    Path(settings["counts"]).write_text(json.dumps(counts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
