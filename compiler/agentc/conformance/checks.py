"""checks_of: all that a backend is held to, as a list of named checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from agentc.backend_api import EnvironmentBackend, StageBackend
from agentc.conformance import declaration, lowering, programs
from agentc.conformance.check import Check
from agentc.conformance.lowering import Contexts, check_setting
from agentc.conformance.serving import served_checks
from agentc.conformance.subject import BackendUnderTest, leaves
from agentc.kinds import kind_named


def checks_of(subject: BackendUnderTest, *, run_programs: bool = False) -> tuple[Check, ...]:
    """The checks of a backend, cheap ones first. With `run_programs`, job programs are started
    as well, as far as reading their config, where their software stack is built."""
    return tuple(_checks(subject, run_programs))


def _checks(subject: BackendUnderTest, run_programs: bool) -> Iterator[Check]:
    backend = subject.backend

    def check(name: str, promise: str, run: Callable[[BackendUnderTest], None]) -> Check:
        return Check(name=name, promise=promise, run=partial(run, subject))

    yield check("id", "the id says what the backend does", declaration.check_id)
    if isinstance(backend, StageBackend) and kind_named(backend.kind) is None:
        return  # nothing more can be said of it
    yield check("entry point", "the entry point bears the id", declaration.check_entry_point)
    yield check("documentation", "backend and settings are described",
                declaration.check_documentation)  # fmt: skip
    yield check("names", "no setting hides another", declaration.check_names)
    yield check("lock", "every package is pinned exactly", declaration.check_lock)
    if isinstance(backend, EnvironmentBackend):
        yield check("facts", "splits, rewards and turns make sense together",
                    declaration.check_environment_facts)  # fmt: skip
    yield check("light import", "loading it imports nothing heavy", declaration.check_light_import)
    yield check("lowers", "a plain stage lowers to jobs", lowering.check_lowers)
    yield check("pure", "lowering twice gives the same", lowering.check_pure)
    yield check("same everywhere", "another process lowers the same",
                lowering.check_same_everywhere)  # fmt: skip
    if isinstance(backend, StageBackend):
        yield check("inputs", "every input reaches a job", lowering.check_inputs)
        yield check("neighbours", "prompt, environment and server enter the key",
                    lowering.check_neighbours)  # fmt: skip
    yield check("programs", "every program exists", programs.check_programs)
    yield check("program imports", "of agentc programs import agentc.program and agentc.kinds only",
                programs.check_program_imports)  # fmt: skip
    decisive = backend.decisive if isinstance(backend, StageBackend) else frozenset[str]()
    contexts = Contexts(subject)
    for path, field, declared in leaves(subject.table):
        identity = "semantic" if path in decisive else declared
        run = partial(check_setting, subject, path, field, identity, contexts)
        yield Check(name=f"setting {path}", promise="honoured, or refused by name", run=run)
    if run_programs and isinstance(backend, StageBackend):
        yield check("config read", "the program reads its whole config",
                    programs.check_config_read)  # fmt: skip
    if run_programs:
        yield from served_checks(subject)
