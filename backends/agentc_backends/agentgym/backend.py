"""Declares `env.agentgym`: any server of the AgentGym family as released, behind agentc's protocol.

Splits, rewards and the step limit follow from what the spec says of the server. Neighbours:
`dialects.py` (the family), `task_lists.py` (splits), `job_serve.py` (the program).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import (
    REQUIRED,
    Field,
    Json,
    choice,
    group,
    integer,
    number,
    string,
    strings,
)
from agentc_backends.agentgym.dialect import (
    ACTION_FORMS,
    OPENINGS,
    REWARD_KINDS,
    SESSION_FIELDS,
    STEP_ERRORS,
    Dialect,
    DialectError,
    overridden,
)
from agentc_backends.agentgym.dialects import FAMILY, OTHER, dialect_named
from agentc_backends.agentgym.task_lists import (
    Numbers,
    SplitError,
    as_text,
    from_text,
    names_of,
    read_splits,
)
from agentc_backends.software import LIGHT

_LEASE_WORDS = ("host", "port", "ready_file", "model", "served_name")
_OBJECT: Mapping[str, Json] = {"type": ["object", "null"]}


def _words(name: str, doc: str, words: tuple[str, ...]) -> Field:
    schema: Mapping[str, Json] = {"type": ["string", "null"], "enum": [*words, None]}
    return Field(name=name, schema=schema, doc=doc)


def _texts(name: str, doc: str) -> Field:
    schema: Mapping[str, Json] = {"type": ["array", "null"], "items": {"type": "string"}}
    return Field(name=name, schema=schema, doc=doc)


_DIALECT: tuple[Field, ...] = (
    string("task_field", "Field of /reset's body that names the task.", nullable=True),
    _words("session_field", "Field that names the session.", SESSION_FIELDS),
    string("prefix", "What stands before every route, such as `/maze`.", nullable=True),
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
    integer("sessions", "Sessions that the server holds before /create hands out somebody else's.",
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
    integer("max_turns", "Step limit of an episode.", minimum=1, nullable=True),
)  # fmt: skip

FIELDS: tuple[Field, ...] = (
    choice("server", "Member of the AgentGym family; `other`: `dialect` says how it speaks.",
           (*FAMILY, OTHER), REQUIRED),
    Field(name="splits", schema={"type": "object"}, default=REQUIRED,
          doc="Task numbers of each split: `{range: [first, end]}` (the end is left out), "
          "`{ids: [...]}` or `{file: path}` (a list of numbers or of items like textcraft_31), "
          "each with `except: [other split]`, and `repeated: drop` where a list has a task twice. "
          "Splits that share a task are refused."),
    string("url", "Address of a server that runs already.", nullable=True,
           pattern="^https?://", identity="placement"),
    group("launch", "Start the server for each job instead. Commands of a spec run only where "
          "AGENTC_ALLOW_LAUNCH is 1.",
          (strings("command", "Program and arguments; `{port}` and `{host}` are filled in.",
                   ()),
           string("cwd", "Folder to start it in.", nullable=True),
           Field(name="variables", schema={"type": "object"}, default={},
                 doc="Environment variables; PYTHONHASHSEED is 0 unless given."),
           string("ready_path", "Path that answers without an error once it is ready.", "/"),
           number("ready_timeout_s", "How long it may take to get ready.", 120.0, above=0)),
          nullable=True, identity="placement"),
    string("fingerprint", "What the server's fingerprint must be (`agentc` prints it; a digest of "
           "the first texts of some tasks); another server is refused. Unset: any.", nullable=True,
           pattern="^[0-9a-f]{32}$"),
    string("release", "What is served, in words, such as a commit: results of another release get "
           "keys of their own.", nullable=True),
    number("timeout_s", "How long one call of the server may take.", 300.0, above=0,
           identity="placement"),
    integer("sessions", "Sessions open on the server at a time.", 64, minimum=1,
            identity="placement"),
    group("dialect", "What the server does differently from the family's member as released.",
          _DIALECT, nullable=True),
)  # fmt: skip


def _lease(options: OptionView) -> LeaseDraft:
    server = options.text("server")
    changes = _changes(options.get("dialect"))
    dialect = _dialect(options, server, changes)
    splits = _splits(options, dialect)
    program = ["-m", "agentc_backends.agentgym.job_serve", "--port", "0"]
    program += ["--ready-file", "{ready_file}", "--server", server]
    program += ["--splits", _json({name: as_text(part) for name, part in splits.items()})]
    if changes:
        program += ["--dialect", _json(changes)]
    release, pinned = options.get("release"), options.get("fingerprint")
    if release is not None:
        program += ["--release", str(release)]
    program += _place(options)
    program += ["--timeout", f"{options.number('timeout_s'):g}"]
    program += ["--sessions", str(options.integer("sessions"))]
    expect: dict[str, Json] = {"name": "agentgym", "server": server}
    if pinned is not None:
        expect["fingerprint"] = pinned
    identity = options.identity()
    # Keys follow the numbers, however they are written.
    identity["splits"] = {name: as_text(part) for name, part in splits.items()}
    timeout = options.number("launch.ready_timeout_s") if options.is_set("launch") else 60.0
    return LeaseDraft(
        role="environment",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=LIGHT,
        program=tuple(program),
        identity=identity,
        port="chosen",
        probe="/health",
        identity_check="environment",
        expect=expect,
        # The fingerprint's resets come on top, and some servers take seconds for each.
        ready_timeout_s=timeout + 240.0,
    )


def _place(options: OptionView) -> list[str]:
    """Where the upstream server is: the arguments that say so."""
    url, launch = options.get("url"), options.get("launch")
    if url is not None and launch is not None:
        options.refuse("launch", "`url` names a server that runs already, so none is to be started",
                       fix="give `url` or `launch`")  # fmt: skip
    if launch is None:
        if url is None:
            options.refuse("url", "it is not said where the server is",
                           fix="give its address as `url`, or start it with `launch`")  # fmt: skip
        return ["--url", str(url)]
    assert isinstance(launch, dict)
    if not launch["command"]:
        options.refuse("launch", "`launch` needs a `command`", fix="command: [program, argument]")
    text = _json({n: v for n, v in launch.items() if v is not None})
    for word in _LEASE_WORDS:
        # Placeholders of the upstream server's, not of the lease's own program.
        text = text.replace(f"{{{word}}}", f"\\u007b{word}}}")
    return ["--launch", text]


def _dialect(options: OptionView, server: str, changes: Mapping[str, Json]) -> Dialect:
    try:
        return overridden(dialect_named(server), changes)
    except DialectError as error:
        options.refuse("dialect", str(error))
        return FAMILY["textcraft"]


def _splits(options: OptionView, dialect: Dialect) -> Mapping[str, Numbers]:
    written = options.get("splits")
    assert isinstance(written, dict)
    try:
        return read_splits(written, options.file, dialect.tasks)
    except SplitError as error:
        options.refuse("splits", str(error))
        return {}


def _changes(written: Json) -> dict[str, Json]:
    """What the spec says of the dialect, without what it leaves alone."""
    if not isinstance(written, dict):
        return {}
    return {name: value for name, value in written.items() if value is not None}


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    """The declaration under a spec's settings, which may still be wrong in any way."""
    server = given.get("server")
    try:
        dialect = overridden(dialect_named(str(server)), _changes(given.get("dialect")))
    except (KeyError, DialectError, TypeError):
        return replace(BACKEND, splits=names_of(given.get("splits")))
    return replace(
        BACKEND,
        splits=names_of(given.get("splits")),
        reward_range=dialect.scaled_range,
        success_at=dialect.success_at,
        max_turns=dialect.max_turns,
    )


def _expected_tasks(given: Mapping[str, Json]) -> Mapping[str, tuple[float, float]]:
    splits = given.get("splits")
    assert isinstance(splits, dict)
    return {name: (float(len(from_text(str(text)))), 1.0) for name, text in splits.items()}


def _json(value: Mapping[str, Json]) -> str:
    return json.dumps(value, sort_keys=False, separators=(",", ":"))


BACKEND = EnvironmentBackend(
    id="env.agentgym",
    version=1,
    doc="Any environment server of the AgentGym family as released, at an address or started for "
    "the job: its fields, rewards, errors and missing calls are told by a dialect.",
    software=LIGHT,
    lease=_lease,
    fields=FIELDS,
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=100,
    expected_tasks=_expected_tasks,
    configured=_configured,
)
