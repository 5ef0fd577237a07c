"""How the embedded engine's cost grows with the conversations that it keeps:
`python -m benchmarks.many_conversations 200 800 2000` in an interpreter with torch.

A tiny model, so that what is measured is the engine. Each conversation has three turns behind one
instruction of 80 tokens; printed are seconds of a processor, tokens computed and reused, and a
digest of the replies, which no way of keeping prefixes may change.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from agentc_backends.engine.generation import Engine, EngineLimits, EngineRequest
from agentc_backends.engine.model import Checkpoint, use_ragged_attention

CONTEXT, TOKENS = 1024, 512


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.many_conversations", description=__doc__)
    parser.add_argument("numbers", type=int, nargs="*", default=[200, 800, 2000])
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=TOKENS, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=CONTEXT,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    with torch.inference_mode():
        geometry = use_ragged_attention(model)
    checkpoint = Checkpoint("", model, None, geometry, TOKENS, 16, CONTEXT, frozenset())
    print("| conversations | replies | CPU s | computed | reused | replies' digest |")
    print("|---|---|---|---|---|---|")
    for number in options.numbers:
        engine = Engine(checkpoint, EngineLimits(), CONTEXT)
        began = time.process_time()
        digest = converse(engine, number)
        seconds = time.process_time() - began
        counts = f"{engine.counters.computed} | {engine.reused_tokens}"
        print(f"| {number} | {3 * number} | {seconds:.1f} | {counts} | {digest} |", flush=True)


def converse(engine: Engine, number: int) -> str:
    """Three turns of each; eight letters of a digest of all replies."""
    rng = random.Random(0)
    instruction = [rng.randrange(TOKENS) for _ in range(80)]
    talks = [[*instruction, *(rng.randrange(TOKENS) for _ in range(20))] for _ in range(number)]
    digest = hashlib.sha256()
    for turn in range(3):
        asked = [
            EngineRequest(
                prompt=torch.tensor(talk, dtype=torch.int32).numpy(),
                max_tokens=8,
                done=lambda ended: None,
                temperature=1.0,
                key=(place, turn),
            )
            for place, talk in enumerate(talks)
        ]
        engine.run_all(asked)
        for talk, each in zip(talks, asked, strict=True):
            digest.update(repr(each.tokens).encode())
            talk += [*each.tokens, *(rng.randrange(TOKENS) for _ in range(20))]
    return digest.hexdigest()[:8]


if __name__ == "__main__":
    main()
