"""Declares `env.agentgym`: any server of the AgentGym family as released, behind agentc's protocol.

Splits, rewards and the step limit follow from what the spec says of the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import (
    Field,
    Json,
    integer,
    number,
    string,
)
from agentc.kinds.settings import fields_of
from agentc_backends.environments.agentgym.dialects import (
    ACTION_FORMS,
    FAMILY,
    OPENINGS,
    OTHER,
    SESSION_FIELDS,
    STEP_ERRORS,
    DialectError,
    UpstreamDialect,
    dialect_named,
    overridden,
)
from agentc_backends.environments.agentgym.settings import AgentGymSettings
from agentc_backends.environments.declaration import effective, environment_lease
from agentc_backends.environments.external.environment import REWARD_KINDS
from agentc_backends.environments.external.fields import check_place, launch_fields
from agentc_backends.environments.external.task_lists import (
    Numbers,
    expected_numbers,
    names_of,
    read_splits,
)
from agentc_backends.environments.server.splits import SplitError, fold_numbers
from agentc_backends.software import LIGHT

_OBJECT: Mapping[str, Json] = {"type": ["object", "null"]}


def _words(name: str, doc: str, words: tuple[str, ...]) -> Field:
    schema: Mapping[str, Json] = {"type": ["string", "null"], "enum": [*words, None]}
    return Field(name=name, schema=schema, doc=doc)


def _texts(name: str, doc: str) -> Field:
    schema: Mapping[str, Json] = {
        "type": ["array", "null"],
        "items": {"type": "string", "minLength": 1},
    }
    return Field(name=name, schema=schema, doc=doc)


_DIALECT: tuple[Field, ...] = (
    string("task_field", "Field of /reset's body that names the task.", nullable=True),
    _words("session_field", "Field that names the session.", SESSION_FIELDS),
    string("prefix", "What is before every route, such as `/maze`.", nullable=True, blank=True),
    Field(name="create_body", schema=_OBJECT, doc="Body of /create; unset: it has none."),
    Field(name="reset_fields", schema=_OBJECT, doc="Constants in /reset's body."),
    _words("opening", "Where a task's first text is: `fields` of the reply to /reset, the reply's "
           "`text`, its `first` item, or what GET /observation then says (`observe`).", OPENINGS),
    _texts("opening_fields", "The fields of `opening: fields`, joined by newlines."),
    string("step_field", "Field of the observation in replies to /step.", nullable=True),
    string("reward_field", "Field of the reward in replies to /step.", nullable=True),
    _words("reward_kind", "How rewards of steps make the episode's: the `latest` counts, their "
           "`sum`, or their `max`.", REWARD_KINDS),
    Field(name="reward_range", schema={"type": ["array", "null"], "items": {"type": "number"}},
          doc="[lowest, highest] reward of an episode in the server's units; another is an error."),
    number("reward_scale", "Factor that turns the server's rewards into agentc's.", above=0,
           nullable=True),
    _texts("done_fields", "Fields of replies to /step of which a true one ends the episode."),
    Field(name="closes", schema={"type": ["boolean", "null"]}, doc="Whether there is a /close."),
    integer("sessions", "Sessions that the server holds before /create hands out external.",
            minimum=1, nullable=True),
    _words("step_errors", "An error in the reply to an action: a `failure`, which voids the "
           "episode, or an `observation` for the agent.", STEP_ERRORS),
    _words("action_form", "How /step takes an action: `bare`, `marked` by `Action: `, or `fenced` "
           "by triple backticks.", ACTION_FORMS),
    string("legal_actions", "Field of replies that lists legal actions; appended to observations.",
           nullable=True),
    _texts("failure_texts", "Observations that mean the server failed."),
    number("success_at", "An episode with at least this reward, scaled, is a success.",
           nullable=True),
    integer("max_turns", "Turns of an episode, where the stage does not say.", minimum=1,
            nullable=True),
    integer("step_limit", "Actions after which the server itself ends an episode; a reply without "
            "an action then counts as one. Unset: the member's own, if it has one.", minimum=1,
            nullable=True),
)  # fmt: skip


def _lease(options: OptionView) -> LeaseDraft:
    settings = effective(options, AgentGymSettings)
    changes = _changes(settings.dialect)
    splits = _splits(options, settings, _dialect(options, settings.server, changes))
    lines: dict[str, Json] = {name: fold_numbers(part) for name, part in splits.items()}
    check_place(options, settings.url, settings.launch)
    expect: dict[str, Json] = {"server": settings.server}
    if (pinned := options.get("fingerprint")) is not None:
        expect["fingerprint"] = pinned
    timeout = options.number("launch.ready_timeout_s") if options.is_set("launch") else 60.0
    return environment_lease(
        BACKEND,
        options,
        replace(settings, splits=lines, dialect=changes or None),
        # Keys follow the numbers, however they are written.
        identity={**options.identity(), "splits": lines},
        expect=expect,
        # The fingerprint's resets come on top, and some servers take seconds for each.
        ready_timeout_s=timeout + 240.0,
    )


def _dialect(options: OptionView, server: str, changes: Mapping[str, Json]) -> UpstreamDialect:
    try:
        return overridden(dialect_named(server), changes)
    except DialectError as error:
        options.refuse("dialect", str(error))
        return FAMILY["textcraft"]


def _splits(
    options: OptionView, settings: AgentGymSettings, dialect: UpstreamDialect
) -> Mapping[str, Numbers]:
    try:
        return read_splits(settings.splits, options.file, dialect.tasks)
    except SplitError as error:
        options.refuse("splits", str(error))
        return {}


def _changes(written: Any) -> dict[str, Json]:
    """What the spec says of the dialect, without what it leaves alone."""
    if not isinstance(written, dict):
        return {}
    return {name: value for name, value in written.items() if value is not None}


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    """The declaration under a spec's settings, which may still be wrong in any way."""
    server = given.get("server")
    try:
        dialect = overridden(dialect_named(str(server)), _changes(given.get("dialect")))
    except (DialectError, TypeError):
        return replace(BACKEND, splits=names_of(given.get("splits")))
    return replace(
        BACKEND,
        splits=names_of(given.get("splits")),
        reward_range=dialect.scaled_range,
        success_at=dialect.success_at,
        max_turns=dialect.max_turns,
    )


BACKEND = EnvironmentBackend(
    id="env.agentgym",
    example='{server: textcraft, url: "http://127.0.0.1:36008", splits: {test: {range: [0, 100]}}}',
    version=3,
    doc="Any environment server of the AgentGym family as released, at an address or started for "
    "the job: its fields, rewards, errors and missing calls are described by a dialect.",
    software=LIGHT,
    lease=_lease,
    fields=fields_of(
        AgentGymSettings,
        groups={"launch": launch_fields("/"), "dialect": _DIALECT},
        choices={"server": (*FAMILY, OTHER)},
    ),
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=100,
    expected_tasks=expected_numbers,
    configured=_configured,
)
