"""Settings of `serve.transformers`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc.program.settings import setting


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Words of its command line, each under the setting's name."""

    max_model_len: int | None = setting(
        "Longest prompt plus reply in tokens; null: the model's context.", None, minimum=16)
    dtype: Literal["float32", "bfloat16", "float16"] = setting(
        "Arithmetic of the weights and of the keys and values. Only float32 makes "
        "replies independent of what else is being served.", "float32")
    threads: int = setting("Threads of torch.", 1, minimum=1, identity="placement")
    max_batch_tokens: int = setting(
        "Tokens in one pass.", 512, minimum=16, identity="placement")
    max_sequences: int = setting(
        "Replies under way at once.", 64, minimum=1, identity="placement")
    cache_mb: int = setting(
        "Memory for keys and values, in MiB.", 2048, minimum=16, identity="placement")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranking:
    """The group `rerank`."""

    candidates: int = setting("Replies that are drawn for each that is asked for.", 5, minimum=2)
    critic: Literal["target", "online"] = setting(
        "Who ranks them: the slow copy of the run's critic (`target`, the "
        "released code's), or the critic itself (`online`).", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersServer(EngineOptions):
    """Settings of the server."""

    trust_remote_code: bool = setting(
        "Refused: no server runs code that a checkpoint ships.", False)
    rerank: Reranking | None = setting(
        "Say the best of several candidates for each reply, by the critic of the run of "
        "`online_rl` that is served: what CHAI does while it acts. Not at temperature 0.", None)
    structured: bool = setting(
        "Hold replies to a form where a request requests it: calls that are "
        "demanded (`tool_choice`), strict functions, `response_format`. Takes another software "
        "environment, torch's with llguidance.", False)
# fmt: on
