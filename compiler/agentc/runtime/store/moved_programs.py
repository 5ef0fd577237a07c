"""Programs by the names that they had when a plan was made: plans outlive the layout of packages.

A package that moves modules keeps a `moved.json` at its top: old dotted prefixes, new ones.
Neighbour: `plan_file.py`, which reads every entry through this.
"""

from __future__ import annotations

import importlib.util
import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence


def with_current_programs(entry: Mapping[str, Any]) -> Dict[str, Any]:
    """A job or a server of a plan, its programs and those of its leases as they are named now."""
    known = dict(entry)
    if "program" in known:
        known["program"] = current_program(known["program"])
    if known.get("lease"):
        known["lease"] = with_current_programs(known["lease"])
    if known.get("leases"):
        known["leases"] = [with_current_programs(lease) for lease in known["leases"]]
    return known


def module_of(program: Sequence[str]) -> str:
    """What `-m` names; "" for a program that is no module."""
    return program[1] if len(program) > 1 and program[0] == "-m" else ""


def current_program(program: List[str]) -> List[str]:
    """`program` with the module of its `-m` where that is now, and what else of the same package
    its words name, such as vLLM's `--middleware agentc_backends.vllm_server.gate.Gate`."""
    package = module_of(program).partition(".")[0]
    if not package:
        return program
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


@lru_cache(maxsize=None)
def _moved(package: str) -> Dict[str, str]:
    spec = importlib.util.find_spec(package)
    folders: Optional[List[str]] = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders or []:
        file = Path(folder) / "moved.json"
        if file.is_file():
            known: Dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
            return known
    return {}
