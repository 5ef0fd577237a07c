"""What ends a job of agents without its result, told apart by whether another run may help;
`program.py` makes exit codes of them.

Of single answers players meet InfrastructureError (worth another try, see `runner.py`) and
ContextOverflowError of `clients/errors.py`; `connect.py` makes FatalErrors of the others.
"""

from __future__ import annotations


class FatalError(Exception):
    """Trying again cannot help: a request is refused, a task or a split does not exist."""


class ServerLostError(Exception):
    """A server that the job leases does not answer any more."""


class ErrorBudgetError(Exception):
    """More items ended in infrastructure errors than the stage allows."""


class OutOfTimeError(Exception):
    """The job's time limit is near; what is finished is in the journal."""
