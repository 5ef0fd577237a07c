"""The table of docs/design/embedded-server.md: `ENGINE LOAD LAYERS KV_HEADS` are the arguments.

ENGINE is `loop` or `static` (generate), `cb` (transformers' continuous batching) or `ours`; LOAD
is `flat` (96 prompts of 24 tokens, 64 new ones each) or `episodes` (64 conversations of 7 turns).
Prints generated tokens, seconds of CPU and of the clock. One thread; not a test.
"""

from __future__ import annotations

import queue
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from driving import running
from numpy import array, int32
from tests.support.patience import PATIENCE_S
from tiny_models import make_model
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig
from transformers.generation.configuration_utils import ContinuousBatchingConfig

from agentc_backends.engine.generation import EngineRequest
from agentc_backends.engine.model import load_checkpoint

IN_FLIGHT = 32
NO_END = -1


@dataclass(slots=True)
class Talk:
    """A conversation: `turns` requests for `reply` tokens, each followed by an observation."""

    number: int
    turns: int
    reply: int
    prompt: list[int] = field(default_factory=list)
    turn: int = 0

    def go_on(self, tokens: list[int]) -> bool:
        """Take a reply; whether another turn follows."""
        self.turn += 1
        self.prompt = [*self.prompt, *tokens, *words(30, f"{self.number} {self.turn}")]
        return self.turn < self.turns


def words(count: int, seed: str) -> list[int]:
    draw = random.Random(seed)
    return [draw.randrange(4, 1000) for _ in range(count)]


def talks(load: str) -> list[Talk]:
    if load == "flat":
        return [Talk(i, 1, 64, words(24, f"flat {i}")) for i in range(96)]
    return [Talk(i, 7, 20, [*words(180, "all"), *words(120, str(i))]) for i in range(64)]


def converse(pending: list[Talk], submit: Callable[[Talk], None], results: Iterator[Any]) -> int:
    """Keep IN_FLIGHT conversations going; `results` yields (talk, tokens). Returns tokens."""
    total, flying = 0, 0
    while pending or flying:
        while pending and flying < IN_FLIGHT:
            submit(pending.pop())
            flying += 1
        talk, tokens = next(results)
        total += len(tokens)
        if talk.go_on(tokens):
            submit(talk)
        else:
            flying -= 1
    return total


def ours(folder: Path, pending: list[Talk]) -> int:
    ended: queue.Queue[Any] = queue.Queue()
    with running(load_checkpoint(str(folder), "float32"), 2048) as engine:

        def submit(talk: Talk) -> None:
            engine.submit(
                EngineRequest(
                    prompt=array(talk.prompt, dtype=int32),
                    max_tokens=talk.reply,
                    done=lambda sequence: ended.put((talk, sequence.tokens)),
                    temperature=0.9,
                    key=(talk.number, talk.turn),
                )
            )

        return timed(lambda: converse(pending, submit, iter(ended.get, None)))


def cb(folder: Path, pending: list[Talk]) -> int:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    manager = model.init_continuous_batching(
        generation_config=GenerationConfig(
            do_sample=True, temperature=0.9, eos_token_id=NO_END, pad_token_id=3
        ),
        continuous_batching_config=ContinuousBatchingConfig(
            page_size=32, num_blocks=1024, max_batch_tokens=512, use_cuda_graph=False
        ),
    )
    manager.start()
    open_talks: dict[str, Talk] = {}

    def submit(talk: Talk) -> None:
        name = f"{talk.number} {talk.turn}"
        open_talks[name] = talk
        manager.add_request(talk.prompt, request_id=name, max_new_tokens=talk.reply)

    def results() -> Iterator[Any]:
        while True:
            result = manager.get_result(timeout=PATIENCE_S)
            if result is not None and result.is_finished():
                yield open_talks[result.request_id], list(result.generated_tokens)

    try:
        return timed(lambda: converse(pending, submit, results()))
    finally:
        manager.stop(block=True)


def generate(folder: Path, pending: list[Talk], batch: int) -> int:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None

    def work() -> int:
        for start in range(0, len(pending), batch):
            prompts = torch.tensor([talk.prompt for talk in pending[start : start + batch]])
            with torch.inference_mode():
                model.generate(prompts, max_new_tokens=64, do_sample=True, pad_token_id=3)
        return 64 * len(pending)

    return timed(work)


def timed(work: Callable[[], int]) -> int:
    cpu, clock = time.process_time(), time.perf_counter()
    tokens = work()
    cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
    print(f"{tokens} tokens, {cpu:.2f} s of CPU ({tokens / cpu:.0f} tok/s), {clock:.2f} s")
    return tokens


def main() -> None:
    engine, load = sys.argv[1:3]
    layers, kv_heads = map(int, sys.argv[3:5])
    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=1024, hidden_size=256, intermediate_size=512, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=kv_heads, max_position_embeddings=2048,
        tie_word_embeddings=True, initializer_range=0.08,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        folder = make_model(Path(place), config)
        pending = talks(load)
        if engine in ("loop", "static"):
            generate(folder, pending, 1 if engine == "loop" else IN_FLIGHT)
        else:
            {"ours": ours, "cb": cb}[engine](folder, pending)


if __name__ == "__main__":
    main()
