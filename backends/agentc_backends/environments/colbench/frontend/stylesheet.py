"""The data set of ColBench's pages: their stylesheet as it was published (`tailwind.py`)."""

from __future__ import annotations

from agentc.backend_api import DataSet, DataSource
from agentc_backends.environments.colbench.frontend.tailwind import FILE, SHA256

STYLESHEET = DataSet(
    name="tailwind",
    doc="Tailwind 2.2.19's whole stylesheet, which every page of ColBench links.",
    licence="MIT",
    sources=(
        DataSource(
            name=FILE,
            url="https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css",
            size=2_934_019,
        ),
    ),
    unpacked_size=2_934_019,
    program=("-m", "agentc_backends.environments.server.job_copy", FILE),
    contents={FILE: SHA256},
    use=f"`stylesheet: {{path}}/{FILE}` under an environment with `backend: colbench_frontend`",
)
