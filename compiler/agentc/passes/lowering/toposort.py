"""Topological order of a module's stages."""

from __future__ import annotations

from agentc.ir.module import Module, Stage


def ordered(module: Module) -> list[Stage]:
    """Stages in topological order, as declared where that is free."""
    result: dict[str, Stage] = {}
    opened: set[str] = set()
    for start in module.stages:
        pending = [(start, False)]
        while pending:
            name, parents_done = pending.pop()
            stage = module.stages.get(name)
            if stage is None or name in result:
                continue
            if parents_done:
                result[name] = stage
                continue
            if name in opened:
                raise AssertionError(f"a circle of stages through {name}")
            opened.add(name)
            pending.append((name, True))
            parents = [parent for names in stage.inputs.values() for parent in names]
            pending += [(parent, False) for parent in reversed(parents) if parent not in result]
    return list(result.values())
