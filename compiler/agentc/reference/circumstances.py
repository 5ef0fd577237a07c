"""Diagnostics that no spec alone can give: what has to be so for their examples to fail.

The installation that they are about is made up here, by altering the table of backends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentc.backend_api import (
    BackendTable,
    JobDraft,
    LowerContext,
    Software,
    StageBackend,
    StageView,
)
from agentc.compilation import compile_spec
from agentc.kinds import kind_named
from agentc.lock.collect import collect_lock
from agentc.lock.document import render_lock
from agentc.lock.references import OutsideReferences


@dataclass(frozen=True, slots=True)
class Circumstance:
    """`when` ends a sentence that begins with "This fails"; `remedy` is a sentence. `alter` gives
    the backends that are installed, `prepare` adds files to a copy of the example's folder."""

    when: str = ""
    remedy: str = ""
    alter: Callable[[BackendTable], BackendTable] | None = None
    prepare: Callable[[Path, BackendTable], None] | None = None


def _without_compare(table: BackendTable) -> BackendTable:
    left = {name: each for name, each in table.backends.items() if not name.startswith("compare.")}
    return BackendTable(left, table.broken)


def _failing_compare(table: BackendTable) -> BackendTable:
    compare = table.backends["compare.paired"]
    assert isinstance(compare, StageBackend)

    def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
        raise KeyError("confidence")

    broken = replace(compare, id="acme.compare", lower=lower)
    return BackendTable({**_without_compare(table).backends, broken.id: broken}, table.broken)


def _compare_with_a_misspelt_lock(table: BackendTable) -> BackendTable:
    compare = table.backends["compare.paired"]
    assert isinstance(compare, StageBackend)
    lock = "# agentc: pyhton 3.10\n"

    def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
        software = Software(name="acme", lock=lock)
        drafts = compare.lower(stage, context)
        return tuple(replace(draft, software=software, backend="acme.compare") for draft in drafts)

    acme = replace(compare, id="acme.compare", lower=lower)
    return BackendTable({**_without_compare(table).backends, acme.id: acme}, table.broken)


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
                software=Software(name="acme", lock=""),
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
        software=Software(name="acme", lock=""),
        lower=lower,
    )
    return BackendTable({**table.backends, backend.id: backend}, table.broken)


def _broken_distribution(table: BackendTable) -> BackendTable:
    reason = "ModuleNotFoundError: No module named 'acme'"
    complaint = f"backend acme.sft of acme-agents 0.3 cannot be imported: {reason}"
    return BackendTable(table.backends, (*table.broken, complaint))


def _lock_of(spec: Path, table: BackendTable) -> str:
    compiled = compile_spec(spec, {}, table, references=OutsideReferences())
    assert compiled.plan is not None
    lock = collect_lock(compiled.plan, compiled.references, compiled.templates)
    return render_lock(replace(lock, spec="failing.yaml"))


def _lock_of_an_older_backend(folder: Path, table: BackendTable) -> None:
    lock = _lock_of(folder / "failing.yaml", table)
    older = re.sub(r"(expert\.planner): \d+", r"\1: 0", lock)
    (folder / "failing.lock").write_text(older, encoding="utf-8")


def _lock_from_before_an_edit(folder: Path, table: BackendTable) -> None:
    lock = _lock_of(folder / "fixed.yaml", table)
    # A made-up key stays the same in the page when versions of backends change.
    other = re.sub(r"\"(\w+)/[0-9a-f]{32}\"", lambda m: f'"{m[1]}/{"0123456789abcdef" * 2}"', lock)
    (folder / "failing.lock").write_text(other, encoding="utf-8")


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
        "Fix the distribution (here: install what it imports), or uninstall it.",
        _broken_distribution,
    ),
    "AGC671": Circumstance(
        "where the only backend for `compare` is `acme.compare`, whose lock has a misspelt line",
        "Report it to the backend's authors; until then choose another backend with `backend:`.",
        _compare_with_a_misspelt_lock,
    ),
    "AGC740": Circumstance(
        "where `failing.lock` does not exist",
        "Write it with `agentc lock failing.yaml`, and keep it beside the spec.",
    ),
    "AGC741": Circumstance(
        remedy="Write it again with `agentc lock failing.yaml`, or take it from version control.",
    ),
    "AGC742": Circumstance(
        "where `failing.lock` was written with an older version of `expert.planner`",
        "Install what the lock names, to have the results it was written for; or accept the new "
        "version with `agentc lock failing.yaml`.",
        prepare=_lock_of_an_older_backend,
    ),
    "AGC743": Circumstance(
        "where `failing.lock` was written when the split was still `train`",
        "Take the edit back; or accept it with `agentc lock failing.yaml`.",
        prepare=_lock_from_before_an_edit,
    ),
}
