"""Declares `env.sciworld`: ScienceWorld behind the AgentGym protocol, served by `job_serve.py`.

Splits are resolved here, so that lists which share a variation are a compile error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc_backends.environments.declaration import effective, environment_lease
from agentc_backends.environments.published_data import AGENT_R_LISTS, ETO_TRAJECTORIES
from agentc_backends.environments.sciworld.settings import (
    OWN,
    SIMPLIFICATIONS,
    SciworldSettings,
    Text,
    from_line,
    in_a_line,
    read_splits,
    size,
)
from agentc_backends.environments.sciworld.tasks import MOST_STEPS, UNIFORM_LIMIT
from agentc_backends.environments.server.splits import SplitError
from agentc_backends.software import SCIWORLD

_ELECTRICAL = ("power-component", "conductivity")


def _lease(options: OptionView) -> LeaseDraft:
    settings = effective(options, SciworldSettings)
    _check_simplifications(options, settings.simplifications)
    settings = replace(settings, splits=_splits(options, settings))
    identity = options.identity()
    # Keys follow the variations, however they are written.
    identity.pop("tasks", None)
    identity["splits"] = {name: in_a_line(text) for name, text in settings.splits.items()}
    return environment_lease(
        BACKEND,
        options,
        settings,
        identity=identity,
        expect={"options": settings.rules()},
        # A JVM starts first, on a machine that may be busy.
        ready_timeout_s=180.0,
    )


def _check_simplifications(options: OptionView, words: tuple[str, ...]) -> None:
    unknown = [word for word in words if word not in SIMPLIFICATIONS]
    if unknown:
        options.refuse(
            "simplifications",
            f"ScienceWorld has no simplification {unknown[0]!r}",
            fix="choose from " + ", ".join(SIMPLIFICATIONS),
        )
    elif "easy" in words and len(words) > 1:
        options.refuse(
            "simplifications",
            "`easy` represents a set of simplifications and takes no other one beside it",
            fix="write `[easy]`, or the simplifications one by one",
        )


def _splits(options: OptionView, settings: SciworldSettings) -> dict[str, Text]:
    only = options.get("tasks")
    assert isinstance(only, list)
    try:
        found = read_splits(settings.splits, [str(name) for name in only], options.file)
    except SplitError as error:
        options.refuse("splits", str(error))
        return {}
    electrical = [
        task
        for text in found.values()
        for task in text
        if any(word in task for word in _ELECTRICAL)
    ]
    if "noElectricalAction" in settings.simplifications and electrical:
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
    fields=fields_of(SciworldSettings),
    splits=OWN,
    reward_range=(-1.0, 1.0),
    success_at=1.0,
    max_turns=MOST_STEPS,
    expected_tasks=_expected_tasks,
    configured=_configured,
    capabilities=frozenset({"expert", "fork", "snapshot"}),
    data_sets=(ETO_TRAJECTORIES, AGENT_R_LISTS),
)
