"""Settings of `benchmark.lm_eval`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc.program.settings import setting


# fmt: off
@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class LmEvalOptions:
    """Options of the backend."""

    api: Literal["chat", "completions"] = setting(
        "How the model is asked. `chat`: by messages, for tasks that have it generate "
        "(`generate_until`). `completions`: by plain prompts, for those too that compare "
        "likelihoods of answers; a server has to score given tokens for it.", "chat")
    few_shot: int | None = setting(
        "Solved examples before each question; null: as the task says.", None, minimum=0)
    system: str | None = setting(
        "A system message; null: as the task says.", None, blank=True)
# fmt: on
