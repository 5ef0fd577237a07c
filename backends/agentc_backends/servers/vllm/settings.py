"""Settings of `serve.vllm`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc.program.settings import setting


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class VllmServer:
    """What its flags and variables are made of."""

    max_model_len: int | None = setting(
        "Longest prompt plus reply in tokens; null: the model's context.", None, minimum=16)
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = setting(
        "Arithmetic of the weights; `auto` takes the checkpoint's.", "auto")
    quantization: Literal["none", "awq", "gptq", "fp8", "bitsandbytes"] = setting(
        "Weight quantization; `none` takes what the checkpoint says.", "none")
    kv_cache_dtype: Literal["auto", "bfloat16", "float16", "fp8"] = setting(
        "Arithmetic of keys and values; `auto` takes that of the weights.", "auto")
    tool_parser: Literal[
        "none", "hermes", "llama3_json", "mistral", "qwen3_coder", "deepseek_v3", "glm45",
        "kimi_k2",
    ] = setting(
        "How calls of functions are read out of replies, by the notation of the "
        "model's chat template; `none`: they are not, and vLLM refuses `tool_choice: auto`.",
        "none")
    seed: int = setting("Seed of the server; requests carry their own.", 0, seed=True)
    trust_remote_code: bool = setting(
        "Refused: no server runs code that a checkpoint ships.", False)
    enable_prefix_caching: bool = setting(
        "Reuse keys and values of common prefixes.", True, identity="placement")
    enable_chunked_prefill: bool | None = setting(
        "Compute long prompts in pieces beside replies under way; "
        "null: vLLM's choice on GPUs. vLLM 0.32 on a CPU dies of it when requests carry seeds, "
        "so null turns it off where no GPU is placed.", None, identity="placement")
    enforce_eager: bool | None = setting(
        "Do not compile the model, nor capture graphs: starts faster, runs "
        "slower; null: on where no GPU is placed (but for `pipeline_parallel`, which needs "
        "graphs there), off where one is. Compiling for a CPU takes 40 CPU seconds at each "
        "start and a C++ compiler, for 5 to 18% of the speed.", None, identity="placement")
    tensor_parallel: int | None = setting(
        "Devices that share each layer; null: 1, and over several nodes "
        "the GPUs of each.", None, minimum=1, identity="placement")
    pipeline_parallel: int | None = setting(
        "Groups of devices that share the layers; null: 1, and over "
        "several nodes what tensor_parallel leaves of the GPUs.", None, minimum=1,
        identity="placement")
    gpu_memory_utilization: float = setting(
        "Share of a device's memory that may be used.", 0.9, above=0, maximum=1,
        identity="placement")
    max_num_seqs: int | None = setting(
        "Replies under way at once; null: vLLM's choice.", None, minimum=1, identity="placement")
    max_num_batched_tokens: int | None = setting(
        "Tokens in one pass; null: vLLM's choice.", None, minimum=1, identity="placement")
    cpu_offload_gb: float = setting(
        "Weights kept in main memory, in GiB for each device.", 0.0, minimum=0,
        identity="placement")
    cpu_kv_cache_gb: int = setting(
        "Memory for keys and values when serving on a CPU, in GiB.", 1, minimum=1,
        identity="placement")
    threads: int = setting(
        "Threads of each worker when serving on a CPU, each bound to a core that no "
        "other server of the machine has; bound to none where too few cores are free.", 1,
        minimum=1, identity="placement")
# fmt: on
