"""Where jobs run and with what: the spec's `placement:` and a Snakemake profile, by one precedence.

`requests` reads what a profile says, `precedence` settles each value and says who gave it,
`render` prints that. `agentc.runtime.placement` is the same rule for the Snakefile;
docs/design/placement.md.
"""

from agentc.placement.precedence import Placed, Rejected, ResolvedRequest, resolve_placement
from agentc.placement.profile import Requests, read_requests

__all__ = [
    "Placed",
    "Rejected",
    "Requests",
    "ResolvedRequest",
    "read_requests",
    "resolve_placement",
]
