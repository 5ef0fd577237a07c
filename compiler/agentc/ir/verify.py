"""Verifier of the IR level: what every pass may rely on in a module."""

from __future__ import annotations

from agentc.ir.module import Module
from agentc.kinds import kind_named


def verify_module(module: Module) -> list[str]:
    """The invariants that do not hold, as sentences; empty for a sound module."""
    faults: list[str] = []
    for name, stage in module.stages.items():
        if stage.id != name:
            faults.append(f"stage {stage.id} is filed under {name}")
        kind = kind_named(stage.kind)
        if kind is None:
            faults.append(f"{name} is of the unknown kind {stage.kind}")
            continue
        faults += [
            f"{name}.{role} names {parent}, which is no stage"
            for role, parents in stage.inputs.items()
            for parent in parents
            if parent not in module.stages
        ]
        asking = module.environments.get(stage.uses.get("environment", ""))
        roles = {role.name for role in kind.roles_of(stage.inputs)}
        roles |= {*(asking.simulators if asking else ())}
        faults += [
            f"{name} has the role {role}, which {stage.kind} lacks"
            for role in stage.inputs
            if role not in roles and not kind.gathers
        ]
        known = {field.name for field in kind.fields}
        faults += [
            f"{name} sets {field}, which {stage.kind} lacks"
            for field in stage.fields
            if field not in known
        ]
        for section, table in (
            ("environment", module.environments),
            ("server", module.servers),
            ("prompt", module.prompts),
        ):
            used = stage.uses.get(section)
            if used is not None and used not in table:
                faults.append(f"{name} uses the {section} {used}, which is not declared")
    return faults
