"""How servers of the AgentGym family speak: the record of a dialect, its overrides from a spec, and
the known members as of the release of 2026-05 (3ef9235).

Read from the servers' code (WooooDyy/AgentGym, MIT); TextCraft and ScienceWorld were also compared
with recorded exchanges. Members differ in names of fields, in what a reward means and in what can
be closed. Few servers limit an episode's steps; the others' 100 is Agent-R's limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from agentc_backends.environments.external.environment import (
    REWARD_KINDS,
    RangeError,
    RewardKind,
    RewardRule,
    reward_bounds,
)

SessionField: TypeAlias = Literal["id", "env_idx"]
Opening: TypeAlias = Literal["fields", "text", "first", "observe"]
ActionForm: TypeAlias = Literal["bare", "marked", "fenced"]
StepErrors: TypeAlias = Literal["failure", "observation"]

SESSION_FIELDS: tuple[SessionField, ...] = ("id", "env_idx")
OPENINGS: tuple[Opening, ...] = ("fields", "text", "first", "observe")
ACTION_FORMS: tuple[ActionForm, ...] = ("bare", "marked", "fenced")
STEP_ERRORS: tuple[StepErrors, ...] = ("failure", "observation")


class DialectError(ValueError):
    """The settings describe no server that can be talked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamDialect:
    """One way of speaking AgentGym's protocol.

    `session_field` names the session in bodies and queries, `task_field` the task in the body of
    /reset; `reset_fields` are constants of that body, `create_body` is the whole body of /create
    (None: the request has none). `prefix` stands before every route.

    `opening` says where a task's first text is: `fields` of the reply to /reset joined by
    newlines (`opening_fields`), the reply itself (`text`), its first item (`first`), or what
    GET /observation gives after it (`observe`). `step_field` is where replies to /step have it.

    `reward_kind` says how the rewards of steps make the episode's, in the server's own units:
    `latest` (the last one counts), `sum`, or `max`; `reward_range` bounds the episode's reward,
    and `reward_scale` turns it into agentc's.

    `closes`: whether /close exists; without it the server never lets go of a session.
    `sessions` is how many it holds before /create hands out sessions that are somebody else's.
    `step_errors` says what `{"error": ...}` in the reply to an action means: a `failure` of the
    server, which voids the episode, or an `observation` for the agent, whose reward stays.

    `action_form` is how /step wants an action: `bare`, `marked` by "Action: ", or `fenced` by
    triple backticks. `legal_actions` is the field of replies that lists legal actions; they are
    appended to observations. `failure_texts` are observations that mean the server failed.

    `max_turns` is what stages take where they say nothing; `step_limit` is after how many actions
    the server itself ends an episode (None: it counts none), so that a reply without an action,
    which it never sees, costs one as well.
    """

    name: str
    task_field: str
    tasks: int | None = None
    session_field: SessionField = "id"
    prefix: str = ""
    create_body: Mapping[str, Any] | None = None
    reset_fields: Mapping[str, Any] = field(default_factory=dict)
    opening: Opening = "fields"
    opening_fields: tuple[str, ...] = ("observation",)
    step_field: str = "observation"
    reward_field: str = "reward"
    reward_kind: RewardKind = "latest"
    reward_range: tuple[float, float] = (0.0, 1.0)
    reward_scale: float = 1.0
    done_fields: tuple[str, ...] = ("done",)
    closes: bool = True
    sessions: int | None = None
    step_errors: StepErrors = "failure"
    action_form: ActionForm = "bare"
    legal_actions: str | None = None
    failure_texts: tuple[str, ...] = ()
    success_at: float = 1.0
    max_turns: int = 100
    step_limit: int | None = None

    @property
    def scaled_range(self) -> tuple[float, float]:
        """The bounds of an episode's reward in agentc's units."""
        low, high = (value * self.reward_scale for value in self.reward_range)
        return low, high

    @property
    def reward_rule(self) -> RewardRule:
        return RewardRule(
            kind=self.reward_kind,
            bounds=self.reward_range,
            scale=self.reward_scale,
            whose=f"`reward_range` of the dialect `{self.name}`",
        )


_WORDS: Mapping[str, tuple[str, ...]] = {
    "session_field": SESSION_FIELDS,
    "opening": OPENINGS,
    "reward_kind": REWARD_KINDS,
    "action_form": ACTION_FORMS,
    "step_errors": STEP_ERRORS,
}
_TUPLES = ("opening_fields", "done_fields", "failure_texts")
OVERRIDES = tuple(
    each.name for each in fields(UpstreamDialect) if each.name not in ("name", "tasks")
)
"""What a spec may say of a dialect."""


def overridden(dialect: UpstreamDialect, changes: Mapping[str, Any]) -> UpstreamDialect:
    """A dialect with some of its fields replaced; null keeps one as it is.

    Raises DialectError for what does not fit together.
    """
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in OVERRIDES:
            raise DialectError(f"a dialect has no `{name}`; it has {', '.join(OVERRIDES)}")
        if value is None:
            continue
        if name in _WORDS and value not in _WORDS[name]:
            raise DialectError(f"`{name}` is {value!r}; it can be {', '.join(_WORDS[name])}")
        values[name] = tuple(value) if name in _TUPLES else value
    if "reward_range" in values:
        try:
            values["reward_range"] = reward_bounds(values["reward_range"])
        except RangeError as error:
            raise DialectError(str(error)) from None
    made = replace(dialect, **values)
    _check(made)
    return made


def _check(dialect: UpstreamDialect) -> None:
    low, high = dialect.scaled_range
    if dialect.reward_scale <= 0:
        raise DialectError("`reward_scale` must be above 0")
    if not low < dialect.success_at <= high:
        raise DialectError(
            f"`success_at` is {dialect.success_at:g}, but scaled rewards run from {low:g} to "
            f"{high:g}: then every episode succeeds, or none"
        )
    if not dialect.task_field:
        raise DialectError("`task_field` is missing: the field of /reset's body that names a task")
    if dialect.prefix and not dialect.prefix.startswith("/"):
        raise DialectError(f"`prefix` is {dialect.prefix!r}; it must start with a slash")
    if dialect.opening == "fields" and not dialect.opening_fields:
        raise DialectError("`opening_fields` is empty: where is a task's first text?")
    if not dialect.done_fields:
        raise DialectError("`done_fields` is empty: how would an episode end?")


OTHER = "other"
"""A server that is none of these: the spec says how it speaks."""


def _tool(name: str, tasks: int) -> UpstreamDialect:
    """The five tool servers: a task's number is wanted by /create as well, and replies to /reset
    are plain texts. They parse `Action: ... with Action Input: ...` themselves."""
    return UpstreamDialect(
        name=name,
        task_field="id",
        tasks=tasks,
        session_field="env_idx",
        create_body={"id": 0},
        opening="text",
        closes=False,
        action_form="marked",
    )


_KNOWN = (
    UpstreamDialect(
        name="textcraft",
        task_field="data_idx",
        tasks=544,
        create_body={},
    ),
    UpstreamDialect(
        name="sciworld",
        task_field="data_idx",
        tasks=4639,
        opening_fields=("task_description", "observation"),
        # `reward` is what a step added; `score` is the sum, and falls to -100 at a fatal mistake.
        reward_field="score",
        reward_range=(-100.0, 100.0),
        reward_scale=0.01,
    ),
    UpstreamDialect(
        name="babyai",
        task_field="data_idx",
        # `score` adds up `reward`, which is already the episode's: it passes 1 where the level
        # was left with half of the reward or less and played on.
        reward_kind="max",
        # 1 less 0.9 for the share of steps taken; the server ends no level at 0.5 or less.
        success_at=0.5,
    ),
    UpstreamDialect(
        name="alfworld",
        task_field="game",
        tasks=2620,
        reset_fields={"world_type": "Text"},
        legal_actions="available_actions",
        closes=False,
    ),
    UpstreamDialect(
        name="maze",
        task_field="game",
        tasks=26,
        prefix="/maze",
        closes=False,
        max_turns=50,
        step_limit=50,
    ),
    UpstreamDialect(
        name="wordle",
        task_field="seed",
        prefix="/wordle",
        # The server adds 1 to what is 0 or less: 0 for a guess, 1 for the word.
        closes=False,
        max_turns=6,
        step_limit=6,
    ),
    UpstreamDialect(
        name="webshop",
        task_field="session_id",
        tasks=6910,
        session_field="env_idx",
        opening="observe",
        step_field="state",
        closes=False,
        sessions=8000,
    ),
    UpstreamDialect(
        name="sqlgym",
        task_field="item_id",
        tasks=10962,
        session_field="env_idx",
        opening="first",
        step_field="state",
        closes=False,
        sessions=8,
    ),
    _tool("weather", 343),
    _tool("movie", 238),
    _tool("academia", 20),
    _tool("sheet", 20),
    _tool("todo", 155),
    UpstreamDialect(
        name="searchqa",
        task_field="id",
        session_field="env_idx",
        create_body={"id": 0},
        opening="text",
    ),
    UpstreamDialect(
        name="webarena",
        task_field="idx",
        tasks=812,
        session_field="env_idx",
        reset_fields={"seed": 0},
        done_fields=("terminated", "truncated"),
        action_form="fenced",
        failure_texts=("TimeoutError",),
    ),
)
FAMILY: Mapping[str, UpstreamDialect] = {dialect.name: dialect for dialect in _KNOWN}


def dialect_named(name: str) -> UpstreamDialect:
    """A member of the family; for OTHER a dialect that still lacks its `task_field`. Raises
    DialectError."""
    if name == OTHER:
        return UpstreamDialect(name=OTHER, task_field="")
    if name not in FAMILY:
        raise DialectError(f"no server of the family is {name!r}: {', '.join(FAMILY)}, {OTHER}")
    return FAMILY[name]
