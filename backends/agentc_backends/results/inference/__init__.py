"""One inference for every table: what a mean or a difference is known to, and what a test says.

`evaluate`, `compare`, `judge` and `report` take all intervals and p-values
from here, so that one difference has one of each. Standard library only: job programs import it.
docs/design/inference.md says why, with coverage and size by simulation.
"""
