"""The section `software:`: locks of the spec's own in the place of those that backends bring along,
for another build of a server, say, or a container. Part of `lower`;
`front/resolve_sections.py` reads the section."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from agentc.backend_api import Software, software_of
from agentc.diagnostics.other_tools import LOCK_INSTEAD, NO_EXISTING_PYTHON, names_no_lock
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.ir.module import Module
from agentc.passes.unit import PassContext
from agentc.runtime.software.lock_text import (
    LockText,
    LockTextError,
    enumerate_names,
    read_lock_text,
)
from agentc.source.files import VARIABLE, OutsideError

_LARGEST = 1 << 20


def read_locks(module: Module, context: PassContext) -> dict[str, Software]:
    """The software stacks that the spec gives locks for; what cannot be read is reported."""
    found = {}
    for name, own in module.software.items():
        other = names_no_lock(own.file)
        notes = (NO_EXISTING_PYTHON,) if other else ()
        try:
            path = context.boundary.find(own.file)
        except OutsideError as outside:
            context.sink.error(
                "AGC123",
                f"`software` names a place outside of the spec's folder: {outside.place}",
                own.span,
                notes=notes,
                fix=LOCK_INSTEAD
                if other
                else f"if this spec may read it: `--allow-path {Path(outside.place).parent}`, "
                f"or put the directory into {VARIABLE}",
            )
            continue
        try:
            text = _read(path)
            lock = read_lock_text(text)
        except LockTextError as error:
            message = f"the lock {own.file} cannot be read: {error}"
            context.sink.error("AGC671", message, own.span)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            context.sink.error(
                "AGC674",
                f"the lock {own.file} cannot be read: {reason}",
                own.span,
                notes=notes,
                fix=LOCK_INSTEAD if other else None,
            )
        else:
            if lock.unhashed:
                context.sink.error(
                    "AGC675",
                    f"the lock {own.file} has no hash for {enumerate_names(lock.unhashed)}",
                    own.span,
                    notes=_of_local_builds(own.file, lock),
                    fix=f"`agentc software hash {own.file}` adds them",
                )
            found[name] = Software(name=name, lock=text)
    return found


def report_misfits(module: Module, locks: Mapping[str, Software], context: PassContext) -> None:
    """AGC676 for each lock that is a build for other hardware than its name stands for."""
    if not locks:  # to walk all backends imports them
        return
    declared = {each.name: each for backend in context.table for each in software_of(backend)}
    for name, lock in locks.items():
        misfit = declared[name].misfit if name in declared else None
        wrong = None if misfit is None else misfit(read_lock_text(lock.text).pins())
        if wrong is not None:
            own = module.software[name]
            context.sink.error(
                "AGC676",
                f"the lock {own.file} is no build for `{name}`: {wrong.reason}",
                own.span,
                fix=wrong.fix,
            )


def report_unused(module: Module, used: Collection[str], context: PassContext) -> None:
    """AGC673 for each entry whose stack no job of the experiment runs in. A lock for another
    build of what runs is none: the next scale may place it on other hardware."""
    if not module.software:
        return
    known = set(used)
    for backend in context.table:
        builds = {each.name for each in software_of(backend)}
        known |= builds if builds & set(used) else set()
    for name, own in module.software.items():
        if name not in known:
            context.sink.error(
                "AGC673",
                f"no backend of this experiment uses a software stack `{name}`",
                own.name_span,
                expected=f"one of {listed(sorted(known))}",
                fix=did_you_mean(name, sorted(known)),
            )


def _of_local_builds(file: str, lock: LockText) -> tuple[str, ...]:
    """What to do about versions such as `2.11.0+cu130`, which the public index does not have."""
    lines = (line for name, line in lock.pins().items() if name in lock.unhashed)
    local = [line.partition(";")[0].strip() for line in lines if "+" in line]
    if not local:
        return ()
    return (
        f"PyPI has no {enumerate_names(local)}: let PIP_EXTRA_INDEX_URL name an index that has it, "
        f"or `agentc software hash {file} --file WHEEL` its wheel",
        NO_EXISTING_PYTHON,
    )


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError("it is larger than 1 MB")
    return data.decode("utf-8")
