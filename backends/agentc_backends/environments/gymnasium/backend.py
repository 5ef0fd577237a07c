"""Declares `env.gymnasium`: any environment of gymnasium's kind whose actions are text.

Splits, rewards and turns are what the spec says of it, since no check makes the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc_backends.environments.declaration import effective, environment_lease
from agentc_backends.environments.external.fields import (
    REWARD_FIELDS,
    check_rewards,
    declared_by,
)
from agentc_backends.environments.external.task_lists import (
    expected_numbers,
    read_splits,
)
from agentc_backends.environments.gymnasium.settings import GymnasiumSettings
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.splits import SplitError, fold_numbers
from agentc_backends.software import GYMNASIUM

RESERVED = {
    "render_mode": "`observation` says what is rendered",
    "id": "it is a key of the entry itself",
    "disable_env_checker": "the checker changes nothing but warnings",
}
"""Arguments of `gymnasium.make` that are not the spec's, and why."""


def _lease(options: OptionView) -> LeaseDraft:
    settings = effective(options, GymnasiumSettings)
    check_rewards(options)
    for name in settings.kwargs:
        if name in RESERVED:
            options.refuse("kwargs", f"`{name}` cannot be given: {RESERVED[name]}")
    twice = [n for n in settings.actions if _same(n) in map(_same, _without(settings.actions, n))]
    if twice:
        options.refuse("actions", f"`{twice[0]}` names two actions, for case makes no difference")
    try:
        splits = read_splits(settings.splits, options.file, None)
    except SplitError as error:
        options.refuse("splits", str(error))
        splits = {}
    lines: dict[str, Json] = {name: fold_numbers(part) for name, part in splits.items()}
    served = replace(settings, splits=lines)
    return environment_lease(
        BACKEND,
        options,
        served,
        identity={**options.identity(), "splits": lines},
        expect={"options": rules_of(served)},
        ready_timeout_s=120.0,
    )


def _same(name: str) -> str:
    return " ".join(name.split()).casefold()


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    at = names.index(name)
    return names[:at] + names[at + 1 :]


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    return declared_by(BACKEND, given)


BACKEND = EnvironmentBackend(
    id="env.gymnasium",
    example="{id: FrozenLake-v1, splits: {train: {range: [0, 200]}, test: {range: [200, 300]}}}",
    version=1,
    doc="Any environment of gymnasium's kind whose actions can be written as text (Discrete and "
    "Text spaces): observations become text by a documented rule, tasks are seeds of `reset`.",
    software=GYMNASIUM,
    lease=_lease,
    fields=fields_of(GymnasiumSettings, groups={"reward": REWARD_FIELDS}),
    max_turns=50,
    expected_tasks=expected_numbers,
    configured=_configured,
)
