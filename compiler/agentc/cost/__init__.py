"""What an experiment will cost before it starts: time, GPU-hours, tokens and disk, with bands.

A stated prior (`priors`, `hardware`, `parameters`, `workload`) is corrected by what the store has
seen (`past`, `refine`); `estimate_plan` yields an Estimate for each job, `summarise` the totals.
docs/cost.md has the formulas and how wrong they are.
"""

from agentc.cost.estimate import Estimate, Estimator, estimate_plan
from agentc.cost.hardware import DEFAULT_GPU, GPUS
from agentc.cost.quantities import Quantity
from agentc.cost.render import cost_table, short_cost
from agentc.cost.summary import Summary, summarise

__all__ = [
    "DEFAULT_GPU",
    "GPUS",
    "Estimate",
    "Estimator",
    "Quantity",
    "Summary",
    "cost_table",
    "estimate_plan",
    "short_cost",
    "summarise",
]
