"""How a server of the AgentGym family speaks: one frozen record, and its overrides from a spec.

The members of the family differ in the names of fields, in what a reward means and in what can be
closed. What they do after an episode's end differs too, and is never asked for. Neighbours:
`dialects.py` (the known members), `exchange.py` (bodies and replies), `backend.py` (what a spec
may override).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from agentc_backends.environments.foreign.score import (
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
    """A dialect with some of its fields given anew; null keeps one as it is.

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
