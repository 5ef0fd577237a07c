"""Rules that a profile sets resources for and that no plan has: those have no effect."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.suggest import did_you_mean
from agentc.kinds.table import KINDS
from agentc.placement import Requests
from agentc.preflight.finding import PreflightFinding

_RULES = frozenset({*(kind.name for kind in KINDS), "session", "server"})


def check_rules(requests: Requests | None) -> Iterator[PreflightFinding]:
    """A warning for each name that is no rule of agentc's: a profile may be of other workflows,
    too."""
    if requests is None:
        return
    for section, names in (("set-resources", requests.forced), ("set-threads", requests.threads)):
        for name in names:
            if name.removesuffix("_local") in _RULES:
                continue
            hint = did_you_mean(name, sorted(_RULES))
            yield PreflightFinding(
                check="profile",
                verdict="warning",
                message=f"`{section}: {name}` of {requests.profile.file} has no effect: agentc has"
                " no such rule",
                fix=hint
                or "rules are named after the kinds of stages; jobs that share a server"
                " are `session`, shared servers are `server`",
            )
