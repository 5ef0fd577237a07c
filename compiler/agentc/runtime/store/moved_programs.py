"""Programs by the names that they had when a plan was made: plans outlive the layout of packages.

A package that moves modules keeps a `moved.json` at its top: old dotted prefixes, new ones.
Neighbours: `plan_file.py`, which reads jobs, and `servers/job_leases.py`, whose `program_of` is
asked by who starts the program of a lease.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path


def module_of(program: Sequence[str]) -> str:
    """What `-m` names; "" for a program that is no module."""
    return program[1] if len(program) > 1 and program[0] == "-m" else ""


def current_program(program: Sequence[str]) -> list[str]:
    """`program` with the module of its `-m` where that is now, and what else of the same package
    its words name, such as vLLM's `--middleware agentc_backends.vllm_server.gate.Gate`."""
    package = module_of(program).partition(".")[0]
    if not package:
        return [*program]
    return ["-m", *(_current_name(word, package) for word in program[1:])]


def _current_name(word: str, package: str) -> str:
    if not word.startswith(package + "."):
        return word
    parts = word.split(".")[1:]
    moved = _moved(package)
    for count in range(len(parts), 0, -1):
        target = moved.get(".".join(parts[:count]))
        if target is not None:
            return ".".join([package, target, *parts[count:]])
    return word


@cache
def _moved(package: str) -> dict[str, str]:
    spec = importlib.util.find_spec(package)
    folders: list[str] | None = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders or []:
        file = Path(folder) / "moved.json"
        if file.is_file():
            known: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
            return known
    return {}
