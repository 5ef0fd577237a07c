"""Program of bench a: the requests of recorded episodes on the engine alone, no HTTP between.

`python -m benchmarks.offline_engine MODEL TRAJECTORIES DECODE IN_FLIGHT OUT`, in the torch
environment; DECODE is the stage's, as JSON, and OUT becomes JSON. Prompts are tokenised beforehand.
An episode's next request is submitted when its last one ends, so that the engine sees the load that
a rollout gives it.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # as the server is started; read once, by the import below

import numpy
import torch

from agentc_backends.rollout_react.seeds import turn_seed
from agentc_backends.transformers_server.chat_text import ChatText
from agentc_backends.transformers_server.checkpoint import load_checkpoint
from agentc_backends.transformers_server.engine import Engine, Limits, Ongoing

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


def stop_test(stops: list[str], tokenizer: Any) -> Callable[[list[int]], bool]:
    """Whether a stop text has come, looked for as often as the server does."""
    window = max(len(stop.encode()) for stop in stops) + 16

    def finished(tokens: list[int]) -> bool:
        tail = tokenizer.decode(
            tokens[-window:], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return any(stop in tail for stop in stops)

    return finished


def replay(
    engine: Engine,
    episodes: list[list[Request]],
    in_flight: int,
    settings: dict[str, Any],
) -> int:
    """Keep so many episodes going until all are done; returns the tokens generated."""
    ended: queue.Queue[tuple[int, Ongoing]] = queue.Queue()
    position = [0] * len(episodes)

    def submit(number: int) -> None:
        prompt, seed = episodes[number][position[number]]
        position[number] += 1
        engine.submit(
            Ongoing(
                prompt=prompt,
                key=(seed, 0),
                done=lambda sequence, error: ended.put((number, sequence)),
                **settings,
            )
        )

    waiting = [number for number, requests in enumerate(episodes) if requests]
    running, tokens = 0, 0
    while waiting or running:
        while waiting and running < in_flight:
            submit(waiting.pop(0))
            running += 1
        number, sequence = ended.get()
        tokens += len(sequence.tokens)
        if position[number] < len(episodes[number]):
            submit(number)
        else:
            running -= 1
    return tokens


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
        "finished": stop_test(decode["stop"], checkpoint.tokenizer) if decode["stop"] else None,
    }
    engine = Engine(checkpoint, Limits(), checkpoint.context)
    engine.start()
    replay(engine, [[episodes[0][0]]], 1, settings)
    wall, cpu = time.perf_counter(), time.process_time()
    tokens = replay(engine, episodes, int(in_flight), settings)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    engine.stop(RuntimeError("done"))
    # Python would end under the engine's thread otherwise, and torch abort the process.
    for thread in threading.enumerate():
        if thread.name == "engine":
            thread.join()
    Path(out).write_text(json.dumps({"tokens": tokens, "wall_s": wall, "cpu_s": cpu}))


if __name__ == "__main__":
    main()
