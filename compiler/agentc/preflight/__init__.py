"""Preflight: what would end a run hours later, found in seconds before anything is queued.

`offline`, `machine`, `software` and `requests` look at this machine and the plan, `cluster`,
`fitting` and `queue` at SLURM (`slurm_facts`), `hub` at the model hub; each yields findings.
"""

from agentc.preflight.finding import PreflightFinding

__all__ = ["PreflightFinding"]
