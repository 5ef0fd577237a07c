"""compile_spec: from a spec on disk to a plan, with everything that was found on the way.

The only input is the spec (and the files it names, by content); nothing of the machine enters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentc.backend_api import BackendTable, EnvironmentBackend
from agentc.diagnostics import Diagnostic, Sink
from agentc.ir.module import Module
from agentc.passes import Choice, PassContext, Unit, run_passes
from agentc.passes.front import read_module
from agentc.plan.job import Plan
from agentc.syntax.nodes import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """`plan` is None exactly when there are errors among the diagnostics."""

    spec: Spec
    module: Module | None
    plan: Plan | None
    diagnostics: tuple[Diagnostic, ...]
    files: tuple[Path, ...]
    """What was read, the spec first: a change of any of them may change the compilation."""
    choices: tuple[Choice, ...] = ()
    unavailable: tuple[str, ...] = ()
    """Ids of environments that the plan uses and that have no server yet: it cannot run."""

    @property
    def has_errors(self) -> bool:
        """Whether the spec cannot be compiled."""
        return self.plan is None


def compile_spec(path: Path, params: Mapping[str, str], table: BackendTable) -> Compilation:
    """Compile a spec with `-p` values as texts. Errors are in `diagnostics`; nothing is raised
    for a bad spec."""
    sink = Sink()
    for complaint in table.broken:
        sink.warning("AGC609", complaint, fix="mend or uninstall that distribution")
    spec, module = read_module(path, params, table, sink)
    context = PassContext(table=table, sink=sink, directory=path.resolve().parent)
    unit = run_passes(Unit(spec=spec, module=module), context)
    return Compilation(
        spec=spec,
        module=unit.module,
        plan=None if sink.has_errors else unit.plan,
        diagnostics=sink.sorted(),
        files=(path,),
        choices=unit.choices,
        unavailable=_unavailable(unit.plan, table),
    )


def _unavailable(plan: Plan | None, table: BackendTable) -> tuple[str, ...]:
    leased = {lease.backend for job in plan.jobs for lease in job.leases} if plan else set()
    backends = (table.backends.get(name) for name in sorted(leased))
    return tuple(b.id for b in backends if isinstance(b, EnvironmentBackend) and not b.available)
