"""Diagnostics that no spec alone can give: what has to be so for their examples to fail.

The installation that they are about is made up here, by altering the table of backends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from agentc.backend_api import (
    BackendTable,
    JobDraft,
    LowerContext,
    SoftwareEnvironment,
    StageBackend,
    StageView,
)
from agentc.kinds import kind_named


@dataclass(frozen=True, slots=True)
class Circumstance:
    """`when` ends a sentence that begins with "This fails"; `mend` is a sentence."""

    when: str
    mend: str = ""
    alter: Callable[[BackendTable], BackendTable] | None = None


def _without_compare(table: BackendTable) -> BackendTable:
    left = {name: each for name, each in table.backends.items() if not name.startswith("compare.")}
    return BackendTable(left, table.broken)


def _failing_compare(table: BackendTable) -> BackendTable:
    compare = table.backends["compare.paired"]
    assert isinstance(compare, StageBackend)

    def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
        raise KeyError("resamples")

    broken = replace(compare, id="acme.compare", lower=lower)
    return BackendTable({**_without_compare(table).backends, broken.id: broken}, table.broken)


def _expert_without_prompt(table: BackendTable) -> BackendTable:
    kind = kind_named("expert")
    assert kind is not None
    fields = [field.name for field in kind.fields]

    def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
        view = stage.scoped()
        return (
            JobDraft(
                kind="expert",
                backend="acme.expert",
                version=1,
                software=SoftwareEnvironment(name="acme", lock=""),
                program=("-m", "acme"),
                view=view,
                config={name: view.get(name) for name in fields},
                inputs={},
                produces="Trajectories",
                leases=(context.environment_lease(view),),
            ),
        )

    backend = StageBackend(
        id="acme.expert",
        kind="expert",
        version=1,
        doc="Takes recorded episodes.",
        software=SoftwareEnvironment(name="acme", lock=""),
        lower=lower,
    )
    return BackendTable({**table.backends, backend.id: backend}, table.broken)


def _broken_distribution(table: BackendTable) -> BackendTable:
    reason = "ModuleNotFoundError: No module named 'acme'"
    complaint = f"backend acme.sft of acme-agents 0.3 cannot be imported: {reason}"
    return BackendTable(table.backends, (*table.broken, complaint))


CIRCUMSTANCES: Mapping[str, Circumstance] = {
    "AGC101": Circumstance(
        "where there is no file of that name",
        "Name a file that exists; paths start at the folder where agentc is typed.",
    ),
    "AGC604": Circumstance(
        "where no backend for `compare` is installed",
        "Install a distribution that has one; agentc's own has `compare.paired`.",
        _without_compare,
    ),
    "AGC605": Circumstance(
        "where the only backend for `compare` is `acme.compare`, and that has a bug",
        "Report it to the backend's authors; until then choose another backend with `backend:`.",
        _failing_compare,
    ),
    "AGC606": Circumstance(
        "where a backend `acme.expert` is installed that takes episodes as they were recorded",
        alter=_expert_without_prompt,
    ),
    "AGC609": Circumstance(
        "where a distribution `acme-agents` is installed, but not all that it needs",
        "Mend the distribution (here: install what it imports), or uninstall it.",
        _broken_distribution,
    ),
}
