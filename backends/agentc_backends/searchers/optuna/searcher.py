"""Declares Optuna: samplers and pruners over a study in an SQLite file."""

from __future__ import annotations

from agentc.backend_api.trackers import Searcher
from agentc_backends.software import OPTUNA

SEARCHER = Searcher(
    id="optuna",
    doc="Optuna: samplers and pruners; its study is an SQLite file that its own tools read.",
    software=OPTUNA,
    program="agentc_backends.searchers.optuna.job_search",
)
