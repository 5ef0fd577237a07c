"""Program of bench a: the requests of recorded episodes on the engine alone, no HTTP between.

`python -m benchmarks.offline_engine MODEL TRAJECTORIES DECODE IN_FLIGHT OUT`, in the torch
environment; DECODE is the stage's, as JSON, and OUT becomes JSON. Prompts are tokenised beforehand.
An episode's next request is submitted when its last one ends, so that the engine sees the load that
a rollout gives it. Nothing else runs in the process.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # as the server is started; read once, by the import below

import numpy
import torch

from agentc_backends.agents.common.seeds import turn_seed
from agentc_backends.engine.decoding import stop_test
from agentc_backends.engine.generation import ClosedError, Engine, EngineLimits, EngineRequest
from agentc_backends.engine.model import load_checkpoint
from agentc_backends.openai_api.chat_text import ChatText

Request = tuple[Any, int]
"""Prompt tokens and the seed of the request."""


def requests_of(row: dict[str, Any], chat: ChatText) -> list[Request]:
    """The requests of an episode in order, from its row of trajectories.jsonl."""
    found: list[Request] = []
    for at in range(row["prompt_length"], len(row["messages"])):
        if row["messages"][at]["role"] == "assistant":
            prompt = chat.encode(
                row["messages"][:at], add_generation_prompt=True, continue_final_message=False
            )
            seed = turn_seed(row["seed"], len(found))
            found.append((numpy.array(prompt, dtype=numpy.int32), seed))
    return found


class Replay:
    """Keeps so many episodes going until all are done; the engine's inbox."""

    def __init__(
        self, episodes: list[list[Request]], in_flight: int, settings: dict[str, Any]
    ) -> None:
        self.tokens = 0
        self._episodes = deque(iter(requests) for requests in episodes)
        self._settings = settings
        self._next: list[EngineRequest] = []
        for _ in range(min(in_flight, len(episodes))):
            self._begin()

    def take(self, wait: bool) -> list[EngineRequest]:
        if wait and not self._next:
            raise ClosedError
        taken, self._next = self._next, []
        return taken

    def _begin(self) -> None:
        while self._episodes and not self._submit(self._episodes.popleft()):
            pass

    def _submit(self, requests: Iterator[Request]) -> bool:
        for prompt, seed in requests:
            done = partial(self._ended, requests)
            self._next.append(
                EngineRequest(prompt=prompt, key=(seed, 0), done=done, **self._settings)
            )
            return True
        return False

    def _ended(self, requests: Iterator[Request], sequence: EngineRequest) -> None:
        self.tokens += len(sequence.tokens)
        if not self._submit(requests):
            self._begin()


def main() -> None:
    model, rows, decode_text, in_flight, out = sys.argv[1:]
    decode = json.loads(decode_text)
    torch.set_num_threads(1)
    checkpoint = load_checkpoint(model, "float32")
    chat = ChatText(checkpoint.root, checkpoint.tokenizer)
    lines = Path(rows).read_text(encoding="utf-8").splitlines()
    episodes = [requests_of(json.loads(line), chat) for line in lines]
    settings = {
        **{name: decode[name] for name in ("temperature", "top_p", "max_tokens")},
        "ends": checkpoint.ends,
        "finished": stop_test(checkpoint.tokenizer, decode["stop"]) if decode["stop"] else None,
    }
    engine = Engine(checkpoint, EngineLimits(), checkpoint.context)
    engine.run(Replay([[episodes[0][0]]], 1, settings))
    work = Replay(episodes, int(in_flight), settings)
    wall, cpu = time.perf_counter(), time.process_time()
    engine.run(work)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    Path(out).write_text(json.dumps({"tokens": work.tokens, "wall_s": wall, "cpu_s": cpu}))


if __name__ == "__main__":
    main()
