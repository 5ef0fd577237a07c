"""Preflight: what would end a run hours later, found in seconds before anything is queued.

`offline` looks at this machine and the plan, `cluster` asks SLURM (`slurm_query`, read by
`slurm_facts`), `hub` asks the model hub; each yields Findings. `render` prints them.
"""

from agentc.preflight.finding import PreflightFinding

__all__ = ["PreflightFinding"]
