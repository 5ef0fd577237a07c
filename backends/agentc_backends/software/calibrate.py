"""Measures what training and serving on a processor take here: `python -m ... OUT.json`.

For `agentc.cost.hardware`, which starts it in the software environment of the trainers. All
times are processor time of one thread, so that a busy machine is not taken for a slow one.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WIDTHS = (128, 512)
"""Of the models that are trained for a moment; others lie between them."""
_VOCABULARY, _ROWS, _LENGTH = 512, 8, 128
_PATIENCE_S = 0.25
_WORDS = 60_000


def main(arguments: list[str] | None = None) -> int:
    """0 with the measures in the file that is named."""
    [out] = sys.argv[1:] if arguments is None else arguments
    began = time.process_time()
    import torch
    import transformers
    from trl import SFTTrainer  # noqa: F401  # what a trainer imports before it begins

    measured: dict[str, Any] = {"import_s": time.process_time() - began}
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    training = {}
    for width in WIDTHS:
        training[str(width)] = _training(width)
    measured["training"] = training
    measured["decoding"] = _decoding(WIDTHS[0])
    measured["interpreter_s"] = _typical(_interpreted)
    Path(out).write_text(json.dumps(measured), encoding="utf-8")
    return 0


def _model(width: int) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=width,
            intermediate_size=4 * width,
            num_hidden_layers=2,
            num_attention_heads=width // 64,
            vocab_size=_VOCABULARY,
            max_position_embeddings=2 * _LENGTH,
        )
    )


def _training(width: int) -> dict[str, float]:
    """Seconds of a step of AdamW on a batch, and on a row of two tokens, which is overhead alone;
    `weights` and `layers` of the model, `tokens` and `length` of the batch."""
    import torch

    model = _model(width)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step(rows: int, length: int) -> Callable[[], None]:
        ids = torch.randint(0, _VOCABULARY, (rows, length))

        def once() -> None:
            model(input_ids=ids, labels=ids).loss.backward()
            optimiser.step()
            optimiser.zero_grad()

        return once

    return {
        "weights": float(sum(each.numel() for each in model.parameters())),
        "layers": 2.0,
        "tokens": float(_ROWS * _LENGTH),
        "length": float(_LENGTH),
        "step_s": _typical(step(_ROWS, _LENGTH)),
        "overhead_s": _typical(step(1, 2)),
    }


def _decoding(width: int) -> dict[str, float]:
    """Seconds of the pass that gives one more token of one sequence, and of 32."""
    import torch

    model = _model(width).eval()
    found = {}
    for name, sequences in (("one_s", 1), ("many_s", 32)):
        ids = torch.randint(0, _VOCABULARY, (sequences, _LENGTH))
        with torch.inference_mode():
            cache = model(input_ids=ids, use_cache=True).past_key_values

            def once(cache: Any = cache, ids: Any = ids) -> None:
                cache.crop(-1)
                logits = model(input_ids=ids[:, -1:], past_key_values=cache).logits[:, -1]
                torch.multinomial(logits.softmax(-1), 1)

            found[name] = _typical(once)
    return found


def _interpreted() -> None:
    """What environments and clients do: dictionaries, texts, JSON."""
    words = {f"word {number}": number for number in range(_WORDS // 20)}
    json.loads(json.dumps(sorted(words.items())))
    " ".join(words).split()


def _typical(act: Callable[[], object]) -> float:
    """The median of its processor time, once warm."""
    act()
    times: list[float] = []
    began = time.process_time()
    while len(times) < 3 or time.process_time() - began < _PATIENCE_S:
        at = time.process_time()
        act()
        times.append(time.process_time() - at)
    return sorted(times)[len(times) // 2]


if __name__ == "__main__":
    sys.exit(main())
