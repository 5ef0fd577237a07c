"""The environment checks of a backend: its server is started from the lease that it drafts, in
the software stack that it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cache
from pathlib import Path

from agentc.backend_api import EnvironmentBackend
from agentc.conformance.check import Check, Fault, Skipped
from agentc.conformance.environment_process import ServedEnvironment, served
from agentc.conformance.environments import DeclaredEnvironment, environment_checks
from agentc.conformance.subject import BackendUnderTest
from agentc.plan.job import Lease


def served_checks(
    subject: BackendUnderTest, *, actions: Sequence[str] = (), kept: ExitStack | None = None
) -> Iterator[Check]:
    """What the server of an environment's backend is held to. A check is skipped where the
    software stack is not built (`Subject.pythons`).

    Each check starts a server of its own. With `kept`, those that want nothing special of theirs
    share one, which ends with that stack: a fourteenth of the starts, and episodes of one check
    behind those of another.
    """
    backend = subject.backend
    if not isinstance(backend, EnvironmentBackend) or not backend.available:
        return

    @cache
    def planned() -> tuple[Lease, Path]:
        return lease_of(subject)

    @cache
    def shared(stack: ExitStack) -> ServedEnvironment:
        return stack.enter_context(alone())

    def start(
        *, hash_seed: int = 0, extra: Sequence[str] = ()
    ) -> AbstractContextManager[ServedEnvironment]:
        if kept is not None and hash_seed == 0 and not extra:
            return nullcontext(shared(kept))
        return alone(hash_seed, extra)

    def alone(
        hash_seed: int = 0, extra: Sequence[str] = ()
    ) -> AbstractContextManager[ServedEnvironment]:
        lease, python = planned()
        return served(
            lease.draft.program,
            python,
            settings=lease.draft.settings,
            hash_seed=hash_seed,
            extra=extra,
            ready_timeout_s=lease.draft.ready_timeout_s,
        )

    for check in environment_checks(start, _declared(subject, backend), actions=actions):
        yield Check(name=f"serves: {check.name}", promise=check.promise, run=check.run)


def lease_of(subject: BackendUnderTest) -> tuple[Lease, Path]:
    """Raises Skipped where the server's software is not there, Fault where there is no lease."""
    outcome = subject.lower(subject.start)
    for job in outcome.jobs:
        for lease in job.leases:
            if lease.draft.backend == subject.backend.id:
                name = lease.software
                python = None if name is None else subject.pythons.get(outcome.locks[name].sha256)
                if python is None:
                    raise Skipped(f"the software stack `{name}` is not built here")
                return lease, python
    raise Fault(f"it drafts no lease: {outcome.complaints()}")


def _declared(subject: BackendUnderTest, backend: EnvironmentBackend) -> DeclaredEnvironment:
    own = backend.under(subject.start)
    return DeclaredEnvironment(
        splits=own.splits,
        reward_range=own.reward_range,
        success_at=own.success_at,
        max_turns=own.max_turns,
        capabilities=own.capabilities,
    )
