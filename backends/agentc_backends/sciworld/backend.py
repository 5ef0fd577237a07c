"""Declares `env.sciworld`: ScienceWorld behind the AgentGym protocol, served by `job_serve.py`.

Splits are resolved here, so that lists which share a variation are a compile error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import Field, Json, boolean, choice, integer, strings
from agentc_backends.sciworld.splits import (
    DEFAULT,
    OWN,
    SplitError,
    Text,
    from_line,
    in_a_line,
    read_splits,
    size,
)
from agentc_backends.sciworld.tasks import MOST_STEPS, UNIFORM_LIMIT
from agentc_backends.software import SCIWORLD

_SIMPLIFICATIONS = (
    "easy",
    "teleportAction",
    "openDoors",
    "openContainers",
    "selfWateringFlowerPots",
    "noElectricalAction",
)
_ELECTRICAL = ("power-component", "conductivity")

FIELDS: tuple[Field, ...] = (
    strings("simplifications", "ScienceWorld's simplifications: " + ", ".join(_SIMPLIFICATIONS[1:])
            + "; `easy` alone is all of them but openContainers (and, in electrical tasks, "
            "noElectricalAction). ETO plays with easy, AgentGym without any.", ("easy",)),
    Field(name="splits", schema={"type": "object"}, default=dict(DEFAULT),
          doc="Variations of each split: `{own: train}` (the simulator's own), `{list: eto}` or "
          "`{list: agent_r}` (published lists), `{file: path, format: eto}` ([task, variation] "
          "pairs; `agentgym` and `agentgym_without_2_3`: indices) or `{variations: {boil: 0-13}}`, "
          "each with `except: [other split]`. Splits that share a variation are refused."),
    strings("tasks", "Keep only these tasks, by name or number (`boil`, `4-2`); empty: all."),
    choice("step_limit", "Actions until an episode ends: ETO's for each task (10 to 120), 100 for "
           "all, or none (gold paths may take more).", ("per_task", "uniform", "none"),
           "per_task"),
    choice("score", "An episode's reward: the best score reached, as ETO has it, or the last.",
           ("best", "last"), "best"),
    choice("negative", "Reward of a fatal mistake (focusing on the wrong thing), which ends the "
           "episode: -1, or 0.", ("keep", "zero"), "keep"),
    choice("opening", "First observation: the task alone, or with what the agent sees.",
           ("task", "task_and_room"), "task_and_room"),
    boolean("snap_actions", "Take an action that is not legal as the legal one that shares most "
            "words with it.", False),
    choice("expert_thoughts", "Thoughts of the simulator's own agent, which has none: a plain "
           "sentence made of each action, or none.", ("plain", "none"), "plain"),
    integer("processes", "JVMs at a time; null: one for each core.", None, minimum=1,
            nullable=True, identity="placement"),
    integer("heap_mb", "Memory of each JVM.", 512, minimum=128, identity="placement"),
)  # fmt: skip
_WORDS = {
    "step_limit": "--step-limit",
    "score": "--score",
    "negative": "--negative",
    "opening": "--opening",
    "expert_thoughts": "--expert-thoughts",
}


def _lease(options: OptionView) -> LeaseDraft:
    simplifications = _simplifications(options)
    splits = _splits(options, simplifications)
    words = {name: options.text(name) for name in _WORDS}
    snap = options.flag("snap_actions")
    program = ["-m", "agentc_backends.sciworld.job_serve", "--port", "0"]
    program += ["--ready-file", "{ready_file}", "--simplifications", simplifications]
    program += ["--splits", json.dumps(splits, separators=(",", ":"))]
    for name, flag in _WORDS.items():
        program += [flag, words[name]]
    if snap:
        program.append("--snap-actions")
    processes = options.get("processes")
    if processes is not None:
        program += ["--processes", str(processes)]
    program += ["--heap-mb", str(options.integer("heap_mb"))]
    identity = options.identity()
    # Keys follow the variations, however they are written.
    identity.pop("tasks", None)
    identity["splits"] = {name: in_a_line(text) for name, text in splits.items()}
    rules: dict[str, Json] = {"simplifications": simplifications, **words, "snap_actions": snap}
    return LeaseDraft(
        role="environment",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=SCIWORLD,
        program=tuple(program),
        identity=identity,
        port="chosen",
        probe="/health",
        identity_check="environment",
        expect={"name": "sciworld", "options": rules},
        # A JVM starts first, on a machine that may be busy.
        ready_timeout_s=180.0,
    )


def _simplifications(options: OptionView) -> str:
    """As the simulator takes them."""
    given = options.get("simplifications")
    assert isinstance(given, list)
    words = [str(word) for word in given]
    unknown = [word for word in words if word not in _SIMPLIFICATIONS]
    if unknown:
        options.refuse(
            "simplifications",
            f"ScienceWorld has no simplification {unknown[0]!r}",
            fix="choose from " + ", ".join(_SIMPLIFICATIONS),
        )
    elif "easy" in words and len(words) > 1:
        options.refuse(
            "simplifications",
            "`easy` stands for a set of simplifications and is given alone",
            fix="write `[easy]`, or the simplifications one by one",
        )
    return ",".join(words)


def _splits(options: OptionView, simplifications: str) -> dict[str, Text]:
    written, only = options.get("splits"), options.get("tasks")
    assert isinstance(written, dict)
    assert isinstance(only, list)
    try:
        found = read_splits(written, [str(name) for name in only], options.file)
    except SplitError as error:
        options.refuse("splits", str(error))
        return {}
    electrical = [
        task
        for text in found.values()
        for task in text
        if any(word in task for word in _ELECTRICAL)
    ]
    if "noElectricalAction" in simplifications and electrical:
        options.refuse(
            "simplifications",
            f"{electrical[0]} cannot be done without electrical actions",
            fix="leave noElectricalAction out, or such tasks (`tasks: [...]`)",
        )
    return found


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    """The declaration under a spec's settings, which may still be wrong in any way."""
    splits = given.get("splits")
    return replace(
        BACKEND,
        splits=tuple(splits) if isinstance(splits, dict) else OWN,
        reward_range=(0.0 if given.get("negative") == "zero" else -1.0, 1.0),
        max_turns=UNIFORM_LIMIT if given.get("step_limit") in ("uniform", "none") else MOST_STEPS,
    )


def _expected_tasks(given: Mapping[str, Json]) -> Mapping[str, tuple[float, float]]:
    splits = given.get("splits")
    assert isinstance(splits, dict)
    return {name: (float(size(from_line(str(line)))), 1.0) for name, line in splits.items()}


BACKEND = EnvironmentBackend(
    id="env.sciworld",
    version=3,
    doc="ScienceWorld: thirty tasks of elementary science in a text world, 7207 variations, on its "
    "released simulator with a Java runtime from PyPI. The simulator's own agent is the expert.",
    software=SCIWORLD,
    lease=_lease,
    fields=FIELDS,
    splits=OWN,
    reward_range=(-1.0, 1.0),
    success_at=1.0,
    max_turns=MOST_STEPS,
    expected_tasks=_expected_tasks,
    configured=_configured,
    capabilities=frozenset({"expert", "fork", "snapshot"}),
)
