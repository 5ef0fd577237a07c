"""Statistical inference, the same for every table: intervals of means and differences, tests.

`evaluate`, `compare`, `judge` and `report` take all intervals and p-values
from here, so that one difference has one of each. Standard library only: job programs import it.
docs/design/inference.md says why, with coverage and size by simulation.
"""
