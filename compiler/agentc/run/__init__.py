"""`agentc run`: what is missing, the driver that makes it, the views that show it, the records.

Everything here works on plan.json as decoded JSON, so that `agentc status` needs no compiler.
"""

from agentc.run.orchestrate import RunOptions, run_plan
from agentc.run.work import Work, read_plan

__all__ = ["RunOptions", "Work", "read_plan", "run_plan"]
