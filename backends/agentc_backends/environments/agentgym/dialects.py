"""The members of the AgentGym family, as their servers speak in the release of 2026-05 (3ef9235).

Read from the servers' code (WooooDyy/AgentGym, MIT); TextCraft and ScienceWorld were also held to
recorded exchanges. Few servers limit an episode's steps; the others' 100 is Agent-R's limit.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentc_backends.environments.agentgym.dialect import DialectError, UpstreamDialect

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
