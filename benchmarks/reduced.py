"""The quickstart made small: the same stages, models and servers on fewer tasks and steps.

Derived from specs/quickstart.yaml when a bench runs, so that a change of it is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
QUICKSTART = ROOT / "specs" / "quickstart.yaml"

_STAGES = {
    "expert": "expert",
    "expert_again": "expert",
    "practice": "expert",
    "pretrain": "sft",
    "sft": "sft",
    "evaluate_untrained": "evaluate",
    "evaluate_sft": "evaluate",
}
_ROUND = {"explore": "rollout", "dpo": "dpo", "evaluate": "evaluate"}
LARGER = {"initialisation": "random", "hidden_size": 384, "layers": 6, "heads": 6}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What is left of the quickstart: tasks and optimiser steps of its stages, and rounds.
    `exploring` and `evaluating` are episodes in flight; `larger_model` is one of about 11 million
    weights."""

    expert_tasks: int = 48
    sft_steps: int = 12
    dpo_steps: int = 4
    explored_tasks: int = 24
    evaluated_tasks: int = 16
    exploring: int = 32
    evaluating: int = 32
    larger_model: bool = False
    rounds: int = 2


def write_reduced(path: Path, size: Size) -> Path:
    """Write the reduced quickstart. Raises KeyError when the quickstart has lost a part that is
    reduced here."""
    spec = yaml.safe_load(QUICKSTART.read_text(encoding="utf-8"))
    spec["name"] = "reduced"
    del spec["claims"]  # they are about the whole quickstart
    if size.larger_model:
        spec["models"]["base"].update(LARGER)
    spec["params"]["rounds"]["default"] = size.rounds
    stages = spec["stages"]
    rounds = stages["eto"].setdefault("repeat", {}).setdefault("stages", {})
    small = _reductions(size)
    for place, names in ((stages, _STAGES), (rounds, _ROUND)):
        for name, kind in names.items():
            if place is stages and name not in stages:
                raise KeyError(name)
            stage = place.setdefault(name, {})
            stage.update(small[kind])
            if "max_steps" in stage:
                stage.pop("epochs", None)
    path.write_text(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def _reductions(size: Size) -> Mapping[str, dict[str, Any]]:
    """By kind, what is written over a stage."""
    return {
        "expert": {"limit": size.expert_tasks},
        "sft": {"max_steps": size.sft_steps},
        "dpo": {"max_steps": size.dpo_steps},
        "rollout": {"limit": size.explored_tasks, "concurrency": size.exploring},
        "evaluate": {"limit": size.evaluated_tasks, "concurrency": size.evaluating},
    }
