"""Declares `serve.vllm`: fields become flags of `vllm serve`, one to one."""

from __future__ import annotations

from agentc.backend_api import LeaseDraft, OptionView, Ranks, ServerBackend
from agentc.backend_api.memory import MemoryQuestion, ServerMemory
from agentc.backend_api.parallel import devices_of, sizes_of
from agentc.kinds.settings import fields_of
from agentc_backends.data.models.sources import REMOTE_CODE
from agentc_backends.servers.start_limit import StartLimit, start_limit
from agentc_backends.servers.vllm.settings import VllmServer
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
    fields=(
        *fields_of(VllmServer),
        *fields_of(StartLimit, default=StartLimit(start_minutes=30.0)),
    ),
    capabilities=frozenset(
        {"chat", "completions", "logprobs", "token_ids", "scoring", "seed", "stop"}
        | {"gpu", "cpu", "multinode", "vision", "tools"}
    ),
    memory=server_memory,
)
