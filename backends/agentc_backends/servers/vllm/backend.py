"""Declares `serve.vllm`: fields become flags of `vllm serve`, one to one."""

from __future__ import annotations

from agentc.backend_api import LeaseDraft, OptionView, Ranks, ServerBackend
from agentc.backend_api.memory import MemoryQuestion, ServerMemory
from agentc.backend_api.parallel import devices_of, sizes_of
from agentc.kinds.field import (
    Field,
    boolean,
    choice,
    integer,
    number,
    seed,
)
from agentc_backends.data.models.sources import REMOTE_CODE
from agentc_backends.servers.start_limit import start_field, start_limit
from agentc_backends.software import VLLM, VLLM_CUDA

_ERROR = (
    r"(?P<cause>(?:\w+\.)*\w*(?:Error|Exception): "
    r"(?!Engine core initialization failed|Executor failed|\d+ validation errors? for).+)"
)
_LOGGED = r"ERROR \S+ \S+ \[[^\]]*\] "

CAUSES = (
    r"^vllm: (?P<cause>.+)",  # said by job_serve.py before vLLM is started
    rf"^\((?:\w*Worker|EngineCore)\S* pid=\d+\) (?:{_LOGGED})?{_ERROR}",
    r"ERROR .*(?P<cause>Worker proc \S+ died unexpectedly)",
    # Settings that vLLM refuses before there is an engine, in the words of pydantic.
    r"^(?:\(APIServer pid=\d+\))?\s+(?P<cause>Value error, .+?)(?: \[type=\w+, input_value=.*)?$",
    r"\berror: (?P<cause>(?:argument|unrecognized arguments|ambiguous option).+)",
    rf"^\(APIServer pid=\d+\) (?:{_LOGGED})?(?!.*EngineDeadError){_ERROR}",
    # The engine's process is gone without a word: killed, by the kernel where memory ran out.
    r"(?P<cause>EngineDeadError: EngineCore encountered an issue)",
    rf"^{_ERROR}",
)
NOISE = (
    r"nanobind",
    r"^ - (?:leaked |\.\.\. skipped)",
    r"leaked (?:semaphore|shared_memory)",
    r"\bRoute: /",
    r"Loading safetensors checkpoint shards:",
    r"FutureWarning: |^  (?:if hasattr|wrapper = lookup)\(",
    r"doesn't include CPU backend. Disabling Triton",
    r"\[api_utils\.py:\d+\] (?:\s|$)",
)


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


FIELDS: tuple[Field, ...] = (
    integer("max_model_len", "Longest prompt plus reply in tokens; null: the model's context.",
            None, minimum=16, nullable=True),
    choice("dtype", "Arithmetic of the weights; `auto` takes the checkpoint's.",
           ("auto", "float32", "bfloat16", "float16"), "auto"),
    choice("quantization", "Weight quantization; `none` takes what the checkpoint says.",
           ("none", "awq", "gptq", "fp8", "bitsandbytes"), "none"),
    choice("kv_cache_dtype", "Arithmetic of keys and values; `auto` takes that of the weights.",
           ("auto", "bfloat16", "float16", "fp8"), "auto"),
    choice("tool_parser", "How calls of functions are read out of replies, by the notation of the "
           "model's chat template; `none`: they are not, and vLLM refuses `tool_choice: auto`.",
           ("none", "hermes", "llama3_json", "mistral", "qwen3_coder", "deepseek_v3", "glm45",
            "kimi_k2"), "none"),
    seed("seed", "Seed of the server; requests carry their own."),
    boolean("trust_remote_code", "Refused: no server runs code that a checkpoint ships.", False),
    boolean("enable_prefix_caching", "Reuse keys and values of common prefixes.", True,
            identity="placement"),
    boolean("enable_chunked_prefill", "Compute long prompts in pieces beside replies under way; "
            "null: vLLM's choice on GPUs. vLLM 0.32 on a CPU dies of it when requests carry seeds, "
            "so null turns it off where no GPU is placed.", None, identity="placement"),
    boolean("enforce_eager", "Do not compile the model, nor capture graphs: starts faster, runs "
            "slower; null: on where no GPU is placed (but for `pipeline_parallel`, which needs "
            "graphs there), off where one is. Compiling for a CPU takes 40 CPU seconds at each "
            "start and a C++ compiler, for 5 to 18% of the speed.", None,
            identity="placement"),
    integer("tensor_parallel", "Devices that share each layer; null: 1, and over several nodes "
            "the GPUs of each.", None, minimum=1, nullable=True, identity="placement"),
    integer("pipeline_parallel", "Groups of devices that share the layers; null: 1, and over "
            "several nodes what tensor_parallel leaves of the GPUs.", None, minimum=1,
            nullable=True, identity="placement"),
    number("gpu_memory_utilization", "Share of a device's memory that may be used.", 0.9, above=0,
           maximum=1, identity="placement"),
    integer("max_num_seqs", "Replies under way at once; null: vLLM's choice.", None, minimum=1,
            nullable=True, identity="placement"),
    integer("max_num_batched_tokens", "Tokens in one pass; null: vLLM's choice.", None, minimum=1,
            nullable=True, identity="placement"),
    number("cpu_offload_gb", "Weights kept in main memory, in GiB for each device.", 0.0,
           minimum=0, identity="placement"),
    integer("cpu_kv_cache_gb", "Memory for keys and values when serving on a CPU, in GiB.", 1,
            minimum=1, identity="placement"),
    integer("threads", "Threads of each worker when serving on a CPU, each bound to a core that no "
            "other server of the machine has; bound to none where too few cores are free.", 1,
            minimum=1, identity="placement"),
    start_field(30.0),
)  # fmt: skip
_FLAGS = {
    "max_model_len": "--max-model-len",
    "dtype": "--dtype",
    "kv_cache_dtype": "--kv-cache-dtype",
    "seed": "--seed",
    "tensor_parallel": "--tensor-parallel-size",
    "pipeline_parallel": "--pipeline-parallel-size",
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "max_num_seqs": "--max-num-seqs",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "cpu_offload_gb": "--cpu-offload-gb",
}
_SWITCHES = {
    "enable_prefix_caching": "enable-prefix-caching",
    "enable_chunked_prefill": "enable-chunked-prefill",
    "enforce_eager": "enforce-eager",
}
_GATE = "agentc_backends.servers.vllm.gate.Gate"


def _lease(options: OptionView) -> LeaseDraft:
    program = ["-m", "agentc_backends.servers.vllm.job_serve", "serve", "{model}"]
    program += ["--served-model-name", "{served_name}", "--host", "{host}", "--port", "{port}"]
    program += ["--middleware", _GATE, "--disable-uvicorn-access-log"]
    # Weights from safetensors only; sampling as each request says, whatever the checkpoint's
    # generation_config.json suggests.
    program += ["--load-format", "safetensors", "--generation-config", "vllm"]
    if options.flag(REMOTE_CODE.path):
        options.refusals.append(REMOTE_CODE)
    _refuse_short_batches(options)
    tensor, pipeline = sizes_of(options.get, options.nodes, options.gpus)
    derived = {"tensor_parallel": tensor, "pipeline_parallel": pipeline}
    for name, flag in _FLAGS.items():
        value = derived[name] if name in derived else options.get(name)
        if value is not None:
            program += [flag, str(value)]
    if options.text("quantization") != "none":
        program += ["--quantization", options.text("quantization")]
    if options.text("tool_parser") != "none":
        program += ["--enable-auto-tool-choice", "--tool-call-parser", options.text("tool_parser")]
    # What null means where no GPU is placed; where one is, vLLM chooses.
    on_cpus = {"enable_chunked_prefill": False, "enforce_eager": pipeline == 1}
    for name, switch in _SWITCHES.items():
        on = options.get(name)
        if on is None and not options.on_gpu:
            on = on_cpus[name]
        if on is None:
            continue
        program.append(f"--{switch}" if on else f"--no-{switch}")
    program += ["--no-trust-remote-code"]
    threads = options.integer("threads")
    workers = tensor * pipeline // options.nodes
    return LeaseDraft(
        backend=BACKEND.id,
        version=BACKEND.version,
        software=VLLM_CUDA if options.on_gpu else VLLM,
        program=tuple(program),
        identity=options.identity(),
        port="held",
        probe="/health",
        identity_check="model",
        variables={
            "OMP_NUM_THREADS": str(threads),
            # Threads that wait leave their core to others.
            "OMP_WAIT_POLICY": "PASSIVE",
            "VLLM_CPU_KVCACHE_SPACE": str(options.integer("cpu_kv_cache_gb")),
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "HF_HUB_OFFLINE": "1",
        },
        ready_timeout_s=start_limit(options),
        silence_s=300.0,
        causes=CAUSES,
        noise=NOISE,
        capabilities=BACKEND.capabilities,
        ranks=None if options.nodes == 1 else _ranks(options.nodes, tensor, pipeline),
        devices=tensor * pipeline if options.on_gpu and options.nodes == 1 else 0,
        cores=0 if options.on_gpu else threads * max(1, workers),
    )


def _refuse_short_batches(options: OptionView) -> None:
    batch, replies = options.get("max_num_batched_tokens"), options.get("max_num_seqs")
    if isinstance(batch, int) and isinstance(replies, int) and batch < replies:
        options.refuse(
            "max_num_batched_tokens",
            f"each of {replies} replies under way (max_num_seqs) takes a token of a pass, and "
            f"max_num_batched_tokens is {batch}: vLLM refuses to start",
            fix=f"set max_num_batched_tokens to {replies} or more, or leave it out",
        )


def _ranks(nodes: int, tensor: int, pipeline: int) -> Ranks:
    return Ranks(
        nodes=nodes,
        each=("--distributed-executor-backend", "mp", "--nnodes", "{nodes}",
              "--node-rank", "{rank}", "--master-addr", "{first_node}",
              "--master-port", "{meeting_port}"),
        others=("--headless",),
        # Without it vLLM takes the address of the way to the internet, which nodes may not have.
        variables={"VLLM_HOST_IP": "{node_address}"},
        sizes={"tensor_parallel": tensor, "pipeline_parallel": pipeline},
    )  # fmt: skip


BACKEND = ServerBackend(
    id="serve.vllm",
    version=2,
    doc="vLLM through its own command line: its CUDA build where placement has GPUs, else its "
    "CPU build.",
    software=VLLM,
    builds=(VLLM_CUDA,),
    lease=_lease,
    fields=FIELDS,
    capabilities=frozenset(
        {"chat", "completions", "logprobs", "token_ids", "scoring", "seed", "stop"}
        | {"gpu", "cpu", "multinode", "vision", "tools"}
    ),
    memory=server_memory,
)
