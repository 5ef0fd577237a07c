"""Declares `env.openenv`: any OpenEnv server, behind agentc's protocol.

Splits, rewards and turns are what the spec says of it.
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
    check_place,
    check_rewards,
    declared_by,
    launch_fields,
)
from agentc_backends.environments.external.task_lists import (
    expected_numbers,
    read_splits,
)
from agentc_backends.environments.openenv.settings import OpenEnvSettings
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.splits import SplitError, fold_numbers
from agentc_backends.software import LIGHT


def _lease(options: OptionView) -> LeaseDraft:
    settings = effective(options, OpenEnvSettings)
    check_rewards(options)
    check_place(options, settings.url, settings.launch)
    if settings.task_field in settings.reset:
        options.refuse("reset", f"`{settings.task_field}` is the field that gets the task's number")
    try:
        splits = read_splits(settings.splits, options.file, None)
    except SplitError as error:
        options.refuse("splits", str(error))
        splits = {}
    lines: dict[str, Json] = {name: fold_numbers(part) for name, part in splits.items()}
    served = replace(settings, splits=lines)
    expect: dict[str, Json] = {"options": rules_of(served)}
    if (pinned := options.get("fingerprint")) is not None:
        expect["fingerprint"] = pinned
    timeout = options.number("launch.ready_timeout_s") if options.is_set("launch") else 60.0
    return environment_lease(
        BACKEND,
        options,
        served,
        identity={**options.identity(), "splits": lines},
        expect=expect,
        # The fingerprint's resets come on top.
        ready_timeout_s=timeout + 240.0,
    )


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    return declared_by(BACKEND, given)


BACKEND = EnvironmentBackend(
    id="env.openenv",
    example='{url: "http://127.0.0.1:8000", splits: {train: {range: [0, 200]}, test: '
    "{range: [200, 300]}}}",
    version=2,
    doc="Any OpenEnv server, at an address or started for the job: its typed actions are filled "
    "from an agent's words by a stated rule, an episode is a connection of its own.",
    software=LIGHT,
    lease=_lease,
    fields=fields_of(
        OpenEnvSettings, groups={"reward": REWARD_FIELDS, "launch": launch_fields("/health")}
    ),
    max_turns=50,
    expected_tasks=expected_numbers,
    configured=_configured,
)
