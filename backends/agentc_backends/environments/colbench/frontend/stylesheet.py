"""The stylesheet of ColBench's pages: where it was published, and the hash by which it is known."""

from __future__ import annotations

from agentc.backend_api import DataSet, DataSource

FILE = "tailwind.min.css"
SHA256 = "b6ad97402eddb903e7a5d7a73ee47a679204efbdda4521a391cbad9df509b932"

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
    program=("-m", "agentc_backends.environments.colbench.frontend.job_copy"),
    contents={FILE: SHA256},
    use=f"`stylesheet: {{path}}/{FILE}` under an environment with `backend: colbench_frontend`",
)
