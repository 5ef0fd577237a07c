"""compile_spec: from a spec on disk to a plan, with everything that was found on the way.

The only input is the spec (and the files it names, by content); nothing of the machine enters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentc.backend_api import BackendTable, EnvironmentBackend
from agentc.collection import paused_collection
from agentc.diagnostics import Diagnostic, Sink
from agentc.diagnostics.diagnostic import Severity
from agentc.diagnostics.suggest import bounded_suggestions
from agentc.front.apply_scale import scale_names
from agentc.front.local_backends import LocalBackends, with_local_backends
from agentc.front.read_module import build_module
from agentc.ir.module import Module
from agentc.ir.search import Ends
from agentc.lock.collect import collect_lock, template_digests
from agentc.lock.compare import compare_lock
from agentc.lock.document import LockDocument, lock_beside, read_lock
from agentc.lock.references import OutsideReferences
from agentc.passes import BackendChoice, PassContext, Unit, run_passes
from agentc.passes.lowering.secrets import (
    SecretUse,
    needed_secrets,
    report_places,
    secrets_of_trackers,
)
from agentc.plan.job import Plan
from agentc.runtime.model_folder.hub_cache import DATA_SETS, cache_folder
from agentc.schema.foreign_configs import report_foreign_command
from agentc.source.files import allowed_code, allowed_paths, folder_of, is_file
from agentc.source.load import load_file
from agentc.source.user_config import model_folders
from agentc.store.paths import FULL
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
    choices: tuple[BackendChoice, ...] = ()
    scale: str | None = None
    """The one that was asked for."""
    references: OutsideReferences = field(default_factory=OutsideReferences)
    """What was asked of the world outside of the spec: files by digest, hub revisions."""
    templates: tuple[tuple[str, str], ...] = ()
    """Name and sha256 of each template file that the spec uses."""
    template_files: tuple[Path, ...] = ()
    """Where those lie, in the same order."""
    secrets: tuple[SecretUse, ...] = ()
    """Settings that refer to secrets, whose values a run will need."""
    unavailable: tuple[str, ...] = ()
    """Ids of environments that the plan uses and that have no server yet: it cannot run."""

    @property
    def has_errors(self) -> bool:
        """Whether the spec cannot be compiled."""
        return self.plan is None


@paused_collection()
@bounded_suggestions()
def compile_spec(
    path: Path,
    params: Mapping[str, str],
    table: BackendTable,
    *,
    scale: str | None = None,
    every_scale: bool = False,
    locked: bool = False,
    references: OutsideReferences | None = None,
    moving: bool = False,
    allowed: Sequence[Path] | None = None,
    code: Sequence[Path] | None = None,
    ends: Ends | None = None,
) -> Compilation:
    """Compile a spec with `-p` values as texts, at a scale. Errors are in `diagnostics`; nothing
    is raised for a bad spec. With `every_scale`, the spec's other scales are checked too.

    The lock beside the spec, if there is one, pins revisions and is compared with the outcome:
    differences are warnings, with `locked` errors. With `references` given no lock is read.
    With `moving`, a branch or tag of a hub that no lock pins is a warning: the plan can be looked
    at, and must not be run. Otherwise, and with `locked`, it is an error.
    `allowed` are directories besides the spec's own that it may name, by default those of
    AGENTC_ALLOW_PATH; `code` are those whose Python it may bring along as backends, by default
    those of AGENTC_ALLOW_CODE. `ends` says after which rounds repeats have stopped: the plan is
    that of so many. The scale `full` is None, the spec as it is written.
    """
    sink = Sink()
    lock, unlocked = None, False
    if references is None:
        lock = _find_lock(path, sink, required=locked)
        # That there is no lock is an error by itself, for all revisions together.
        unlocked = locked and lock is None
        references = _locked_references(path, lock, moving and not locked)
        references.moving |= unlocked
    # Read once, for every scale: a pipe has its text only once.
    directory = folder_of(path)
    found = Sink()
    source, root = load_file(path, found)
    if report_foreign_command(source, sink):
        root = None
    else:
        sink.extend(found.sorted())
    if scale == FULL and FULL not in scale_names(root):
        scale = None
    local = with_local_backends(
        root, table, directory, allowed_code() if code is None else code, sink
    )
    table, root = local.table, root if local.whole else None
    if scale is not None:  # the spec as it is written may use what this scale does not
        sink.next_scale()
    spec, module = build_module(
        source, root, params, table, sink, directory=directory, scale=scale, ends=ends
    )
    context = PassContext(
        table=table,
        sink=sink,
        directory=directory,
        references=references,
        allowed=allowed_paths() if allowed is None else tuple(allowed),
        model_folders=(*model_folders(), cache_folder()),
    )
    unit = run_passes(Unit(spec=spec, module=module), context)
    unit = _with_code(unit, local, references)
    uses = _secrets(unit.module, context)
    others = [other for other in spec.scales if other != scale]
    for other in others if every_scale and not sink.has_errors else ():
        sink.next_scale()
        _, module = build_module(
            source, root, params, table, sink, directory=directory, scale=other
        )
        _check_scale(Unit(spec=spec, module=module), context, path)
    if not unlocked:
        _report_unpinned(unit.module, references, path, sink)
    for complaint in table.broken:
        sink.warning("AGC609", complaint, fix="fix or uninstall that distribution")
    read = (path, *spec.templates)
    templates = _templates(path, read[1:])
    if lock is not None and not sink.has_errors:
        severity: Severity = "error" if locked else "warning"
        sink.extend(_lock_changes(lock, unit.plan, references, templates, scale, severity))
    return Compilation(
        spec=spec,
        module=unit.module,
        plan=None if sink.has_errors else unit.plan,
        diagnostics=sink.sorted(),
        files=(*read, lock_beside(path)),
        choices=unit.choices,
        scale=scale,
        references=references,
        templates=templates,
        template_files=read[1:] if templates else (),
        secrets=uses,
        unavailable=_unavailable(unit.plan, table),
    )


def _locked_references(spec: Path, lock: LockDocument | None, moving: bool) -> OutsideReferences:
    """The revisions that a lock pins. A lock that cannot be read lets no revision move."""
    usable = lock is not None or not is_file(lock_beside(spec))
    return OutsideReferences(pins={} if lock is None else lock.pins(), moving=moving and usable)


def _check_scale(unit: Unit, context: PassContext, spec: Path) -> None:
    """Report what is wrong with another scale. Its references are not those of the plan."""
    apart = replace(context, references=context.references.copy())
    run_passes(unit, apart)
    _report_unpinned(unit.module, apart.references, spec, context.sink, known=context.references)


def _with_code(unit: Unit, local: LocalBackends, references: OutsideReferences) -> Unit:
    """The plan with the code of the spec's own backends, whose files are references."""
    if unit.plan is None or not local.code:
        return unit
    references.files |= local.digests
    return replace(unit, plan=replace(unit.plan, code=local.code))


def _secrets(module: Module | None, context: PassContext) -> tuple[SecretUse, ...]:
    """What refers to secrets; where one has no place, that is reported."""
    if module is None:
        return ()
    report_places(module, context.boundary, context.sink)
    return (*needed_secrets(module, context.table), *secrets_of_trackers(module))


def _lock_changes(
    lock: LockDocument,
    plan: Plan | None,
    references: OutsideReferences,
    templates: tuple[tuple[str, str], ...],
    scale: str | None,
    severity: Severity,
) -> Iterable[Diagnostic]:
    """Where a lock differs from the plan."""
    if plan is None:
        return ()
    return compare_lock(lock, collect_lock(plan, references, templates, scale), severity)


def _unavailable(plan: Plan | None, table: BackendTable) -> tuple[str, ...]:
    leased = {lease.draft.backend for job in plan.jobs for lease in job.leases} if plan else set()
    backends = (table.backends.get(name) for name in sorted(leased))
    return tuple(b.id for b in backends if isinstance(b, EnvironmentBackend) and not b.available)


def _find_lock(spec: Path, sink: Sink, *, required: bool) -> LockDocument | None:
    """The lock beside a spec. One that cannot be read is a warning, or an error when it is
    `required`, as a missing one is then."""
    path = lock_beside(spec)
    if not is_file(path):
        if required:
            sink.error(
                "AGC740",
                f"there is no lock {path.name} beside {spec.name}, and --locked needs one",
                fix=f"agentc lock {spec}",
            )
        return None
    complaints = Sink()
    lock = read_lock(path, complaints)
    for found in complaints.sorted():
        sink.add(found if required else replace(found, severity="warning"))
    return lock


def _report_unpinned(
    module: Module | None,
    references: OutsideReferences,
    spec: Path,
    sink: Sink,
    known: OutsideReferences | None = None,
) -> None:
    """A warning for each branch or tag that no lock pins, where the spec names it; none for those
    that are `known`."""
    if module is None or not references.moving:
        return
    for repo, revision in references.unpinned:
        if known is not None and (repo, revision) in known.revisions:
            continue
        name = repo.removeprefix(DATA_SETS)
        places = (
            stage.fields["revision"].span
            for stage in module.stages.values()
            if all(
                setting in stage.fields and stage.fields[setting].json == value
                for setting, value in (("repo", name), ("revision", revision))
            )
        )
        sink.warning(
            "AGC745",
            f"`{revision}` of {name} is not pinned to a commit yet",
            next(places, None),
            notes=("a branch or a tag may mean another commit tomorrow",),
            fix=f"`agentc run` and `agentc lock` pin it: they write {lock_beside(spec).name}",
        )


def _templates(spec: Path, files: Iterable[Path]) -> tuple[tuple[str, str], ...]:
    try:
        return template_digests(files, folder_of(spec))
    except OSError:  # removed since it was read; the next compilation says so
        return ()
