"""What an experiment will cost before it starts: time, GPU-hours, tokens and disk, with bands.

A prior (`quantities`, `hardware`, `parameters`, `workload`) is corrected by the store's finished
jobs (`past`); `estimate_plan` yields an Estimate for each job, `summarise` the totals at a `place`.
docs/design/cost.md has the formulas.
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
