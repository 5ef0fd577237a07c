"""What vLLM keeps: weights and the longest conversation's keys and values on each device."""

from __future__ import annotations

from agentc.backend_api.memory import MemoryQuestion, ServerMemory
from agentc.backend_api.parallel import devices_of

_WIDTHS = {"float32": 4, "bfloat16": 2, "float16": 2, "auto": 2}
_QUANTISED = {"awq": 0.6, "gptq": 0.6, "bitsandbytes": 0.6, "fp8": 1.0}
"""Bytes of a weight: 4 bits with their scales."""
_BATCH_LARGE, _BATCH, _LARGE_CARD = 8192, 2048, 70e9
"""vLLM 0.32's own choice of tokens in one pass, on cards of more than 70 GiB and others."""
_SEQUENCES = 256
_GIB = 2**30


def server_memory(question: MemoryQuestion) -> ServerMemory:
    """Of serve.vllm: what it cannot do without. The rest of its share is for more conversations."""
    width = _WIDTHS[question.text("dtype", "auto")]
    cache = {"auto": width, "fp8": 1}.get(question.text("kv_cache_dtype", "auto"), 2)
    window = question.integer("max_model_len", question.model.context)
    devices = devices_of(question.get, question.nodes, question.gpus or None)
    large = question.card is None or question.card >= _LARGE_CARD
    usual = _BATCH_LARGE if large else _BATCH
    if question.get("enable_chunked_prefill") is False:
        usual = max(window, _BATCH)
    share, offloaded = question.get("gpu_memory_utilization"), question.get("cpu_offload_gb")
    return ServerMemory(
        weights=_QUANTISED.get(question.text("quantization", "none"), width),
        devices=devices,
        cache=cache,
        window=window,
        batch=question.integer("max_num_batched_tokens", usual),
        flow=width,
        replies=question.integer("max_num_seqs", _SEQUENCES),
        share=float(share) if isinstance(share, (int, float)) else 0.9,
        fixed_cache=0 if question.gpus else question.integer("cpu_kv_cache_gb", 1) * _GIB,
        # On a node: the interface, the engine, and a worker for each device.
        workers=2 + -(-devices // question.nodes),
        offloaded=int(offloaded * _GIB) if isinstance(offloaded, (int, float)) else 0,
    )
