"""What the embedded server keeps: weights, and keys and values up to a bound."""

from __future__ import annotations

from agentc.backend_api.memory import MemoryQuestion, ServerMemory

_WIDTHS = {"float32": 4, "bfloat16": 2, "float16": 2}
_MIB = 2**20


def server_memory(question: MemoryQuestion) -> ServerMemory:
    """Of serve.transformers, which serves on processors."""
    width = _WIDTHS[question.text("dtype", "float32")]
    # The critic that ranks candidates is as large as the model, and in float32. One with an encoder
    # of its own (RoBERTa: 0.5 GB) is counted so too: the server is not told which.
    critic = 0 if question.get("rerank") is None else _WIDTHS["float32"]
    window = question.integer("max_model_len", question.model.context)
    return ServerMemory(
        weights=width + critic,
        devices=1,
        cache=width,
        window=window,
        batch=question.integer("max_batch_tokens", 512),
        flow=width,
        replies=question.integer("max_sequences", 64),
        fixed_cache=question.integer("cache_mb", 2048) * _MIB,
        # The interface, and the engine.
        workers=2,
    )
