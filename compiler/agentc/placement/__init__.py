"""Where jobs run and with what: the spec's `placement:` and a Snakemake profile, by one precedence.

`requests` reads what a profile says, `precedence` settles each value and says who gave it,
`render` prints that. The Snakefile follows the same rule by itself; docs/design/placement.md.
"""

from agentc.placement.precedence import Placed, Rejected, Settled, settle_plan
from agentc.placement.requests import Requests, read_requests

__all__ = ["Placed", "Rejected", "Requests", "Settled", "read_requests", "settle_plan"]
