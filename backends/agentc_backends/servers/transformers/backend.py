"""Declares `serve.transformers`: the embedded server for CPUs, in the torch environment."""

from __future__ import annotations

from agentc.backend_api import LeaseDraft, OptionView, ServerBackend
from agentc.backend_api.memory import MemoryQuestion, ServerMemory
from agentc.kinds.settings import fields_of
from agentc_backends.data.models.sources import REMOTE_CODE
from agentc_backends.servers.start_limit import StartLimit, start_limit
from agentc_backends.servers.transformers.settings import EngineOptions, TransformersServer
from agentc_backends.software import STRUCTURED, TORCH

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


def _lease(options: OptionView) -> LeaseDraft:
    program = ["-m", "agentc_backends.servers.transformers.job_serve", "--die-with-parent"]
    program += ["--model", "{model}", "--served-name", "{served_name}"]
    program += ["--host", "{host}", "--port", "0", "--ready-file", "{ready_file}"]
    for name, value in options.config_of(EngineOptions).items():
        if value is not None:
            program += [f"--{name.replace('_', '-')}", str(value)]
    if options.get("rerank") is not None:
        program += ["--rerank-candidates", str(options.integer("rerank.candidates"))]
        program += ["--rerank-critic", options.text("rerank.critic")]
    structured = options.flag("structured")
    if structured:
        program.append("--structured")
    if options.flag(REMOTE_CODE.path):
        options.refusals.append(REMOTE_CODE)
    return LeaseDraft(
        backend=BACKEND.id,
        version=BACKEND.version,
        software=STRUCTURED if structured else TORCH,
        program=tuple(program),
        identity=options.identity(),
        port="chosen",
        probe="/health",
        identity_check="model",
        variables={
            "OMP_NUM_THREADS": str(options.integer("threads")),
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
        },
        ready_timeout_s=start_limit(options),
        capabilities=BACKEND.capabilities,
    )


BACKEND = ServerBackend(
    id="serve.transformers",
    version=1,
    doc="Continuous batching over Hugging Face models with reuse of conversation prefixes, made "
    "for small models on CPUs: starts in seconds, and a seed fixes a reply whatever else is being "
    "served.",
    software=TORCH,
    builds=(STRUCTURED,),
    lease=_lease,
    fields=(*fields_of(TransformersServer), *fields_of(StartLimit)),
    capabilities=frozenset(
        {"chat", "completions", "logprobs", "token_ids", "scoring", "seed", "stop", "reload", "cpu"}
        | {"tools"}
    ),
    memory=server_memory,
)
