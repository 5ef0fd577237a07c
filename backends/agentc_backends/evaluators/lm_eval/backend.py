"""Declares `benchmark.lm_eval`; `common/lowering.py` makes the jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agentc.backend_api import LeaseDraft, StageView
from agentc.kinds.field import Json
from agentc_backends.evaluators.common.lowering import ExternalEvaluator, benchmark_backend
from agentc_backends.evaluators.lm_eval.settings import LmEvalOptions
from agentc_backends.software import LM_EVAL

_SCORING = frozenset({"completions", "scoring"})
_COMPARES = re.compile(r"^output_type: *['\"]?(loglikelihood|multiple_choice)", re.MULTILINE)
"""In a task of the user's own; what lm-eval's own tasks are, only lm-eval knows."""


def task_file(task: str) -> str | None:
    """A task is a YAML file of the user's own where it is called so."""
    return task if task.endswith((".yaml", ".yml")) else None


def _harness_settings(
    view: StageView, server: LeaseDraft, files: Mapping[str, str]
) -> dict[str, Json]:
    api = view.text("api")
    comparing = [name for name, text in files.items() if task_file(name) and _COMPARES.search(text)]
    if api == "chat" and comparing:
        view.refuse(
            "api",
            f"{comparing[0]} compares likelihoods of answers, which no chat server returns",
            fix="set api: completions",
        )
    if api == "completions" and not server.capabilities >= _SCORING:
        view.refuse(
            "api",
            f"{server.backend} scores no given tokens, which lm-eval compares answers by",
            capability="scoring",
            fix="set api: chat for tasks that generate, or name a server that loads the model "
            "itself: `backend: vllm` or `transformers`",
        )
    # Longer prompts are cut by lm-eval, as its own length would have it otherwise.
    return {"max_model_len": server.identity.get("max_model_len")}


_EVALUATOR = ExternalEvaluator(
    id="benchmark.lm_eval",
    version=1,
    software=LM_EVAL,
    program="agentc_backends.evaluators.lm_eval.job_lm_eval",
    file_of=task_file,
    form="YAML, `sums.yaml`",
    options=LmEvalOptions,
    own=_harness_settings,
)

BACKEND = benchmark_backend(
    _EVALUATOR,
    doc="EleutherAI's lm-eval, unmodified: its own tasks by name, or custom YAML files.",
    capabilities=frozenset({"generate_until", "loglikelihood", "multiple_choice"}),
)
