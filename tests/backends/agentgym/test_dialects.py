"""How requests are worded and replies read, without a server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentc_backends.environments.agentgym.dialects import (
    FAMILY,
    DialectError,
    dialect_named,
    overridden,
)
from agentc_backends.environments.agentgym.upstream import (
    ErrorReplyError,
    HttpReply,
    UpstreamError,
    create_request,
    observe_request,
    read_created,
    read_observation,
    read_opening,
    read_step,
    reset_request,
    step_request,
    worded,
)
from agentc_backends.environments.external.environment import RewardError, RunningScore

# What each released server takes and gives (its route handlers and body models): the reply to
# /create, body of /reset, reply to /reset, its first text, body of /step, reply to /step.
SERVERS: list[tuple[str, Any, dict[str, Any], Any, str | None, Any]] = [
    ("textcraft", {"id": 7, "observation": "x", "done": False, "reward": 0},
     {"id": 7, "data_idx": 3}, {"id": 7, "observation": "Goal: craft x.", "done": False,
     "reward": 0}, "Goal: craft x.", {"observation": "o", "reward": 1, "done": True}),
    ("sciworld", {"id": 7}, {"id": 7, "data_idx": 3}, {"task_name": "boil", "var_num": 0,
     "task_description": "Your task is", "observation": "This room", "reward": 0, "score": 0,
     "deleted": False, "done": False}, "Your task is\nThis room",
     {"observation": "o", "reward": 50, "score": 100, "done": True}),
    ("babyai", {"id": 7}, {"id": 7, "data_idx": 3}, {"observation": "Your goal: x", "reward": 0,
     "score": 0, "deleted": False, "done": False}, "Your goal: x",
     {"observation": "o", "reward": 1.0, "score": 2.0, "done": True}),
    ("alfworld", {"id": 7}, {"id": 7, "game": 3, "world_type": "Text"}, {"id": 7,
     "observation": "You are", "available_actions": ["look", "inventory"], "task_type": "t"},
     "You are\nAVAILABLE ACTIONS: look,inventory",
     {"observation": "o", "reward": 1.0, "available_actions": [], "done": True}),
    ("maze", {"id": 7}, {"id": 7, "game": 3}, {"observation": "The goal is"}, "The goal is",
     {"observation": "o", "reward": 1.0, "done": True}),
    ("wordle", {"id": 7}, {"id": 7, "seed": 3}, {"id": 7, "observation": "Let's start"},
     "Let's start", {"observation": "o", "reward": 1, "done": True}),
    ("webshop", 7, {"env_idx": 7, "session_id": 3}, ["WebShop", None], None,
     {"state": "o", "reward": 1.0, "done": True, "info": None}),
    ("sqlgym", 7, {"env_idx": 7, "item_id": 3}, ["Question", None], "Question",
     {"state": "o", "reward": 1.0, "done": True, "info": {}}),
    *(
        (tool, 7, {"env_idx": 7, "id": 3}, "Now new trial", "Now new trial",
         {"observation": "o", "reward": 1.0, "done": True})
        for tool in ("weather", "movie", "academia", "sheet", "todo", "searchqa")
    ),
    ("webarena", {"env_idx": 7}, {"env_idx": 7, "idx": 3, "seed": 0}, {"observation": "Tab 0",
     "sites": [], "object": ""}, "Tab 0",
     {"observation": "o", "reward": 1.0, "terminated": True, "truncated": False, "info": {}}),
]  # fmt: skip


def test_every_member_of_the_family_is_described() -> None:
    assert {server[0] for server in SERVERS} == set(FAMILY)


@pytest.mark.parametrize(
    ("name", "created", "reset_body", "reset", "first", "stepped"),
    SERVERS,
    ids=lambda v: str(v)[:9],
)
def test_released_servers_are_spoken_to_in_their_words(
    name: str, created: Any, reset_body: Any, reset: Any, first: str | None, stepped: Any
) -> None:
    dialect = FAMILY[name]
    assert read_created(dialect, HttpReply(200, created)) == 7
    request = reset_request(dialect, 7, 3)
    assert request.body == reset_body
    assert read_opening(dialect, HttpReply(200, reset)) == first
    body = step_request(dialect, 7, "look").body
    assert body is not None
    assert {*body} == {dialect.session_field, "action"}
    turn = read_step(dialect, HttpReply(200, stepped))
    assert turn.observation.startswith("o")
    assert turn.done
    assert RunningScore(dialect.reward_rule).after(turn.reward) == 1.0
    assert dialect.success_at <= 1.0


def test_routes_and_bodies_that_differ() -> None:
    assert create_request(FAMILY["maze"]).path == "/maze/create"
    assert create_request(FAMILY["textcraft"]).body == {}
    assert create_request(FAMILY["sciworld"]).body is None
    assert create_request(FAMILY["weather"]).body == {"id": 0}
    assert observe_request(FAMILY["webshop"], 5).query == {"env_idx": "5"}


@pytest.mark.parametrize(
    ("server", "action", "sent"),
    [
        ("textcraft", "get 1 stick", "get 1 stick"),
        ("weather", "finish with Action Input: {}", "Action: finish with Action Input: {}"),
        ("weather", "Action: finish with Action Input: {}", "Action: finish with Action Input: {}"),
        ("webarena", "click [3]", "```click [3]```"),
        ("webarena", "I do ```click [3]```", "I do ```click [3]```"),
    ],
)
def test_actions_carry_the_mark_that_the_server_parses(server: str, action: str, sent: str) -> None:
    assert worded(FAMILY[server], action) == sent


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (HttpReply(200, {"error": "0"}), "the server answers an error: 0"),
        (HttpReply(500, "Internal Server Error"), "answers 500: Internal Server Error"),
        (HttpReply(422, {"detail": []}), "answers 422"),
        (HttpReply(200, {"reward": 0, "done": False}), "a text in `observation`"),
        (HttpReply(200, {"observation": "o", "done": False}), "a number in `reward`"),
        (
            HttpReply(200, {"observation": "o", "reward": float("nan"), "done": False}),
            "a number in",
        ),
        (HttpReply(200, {"observation": "o", "reward": 0}), "true or false in `done`"),
        (HttpReply(200, ["o"]), "expected an object"),
    ],
)
def test_what_is_no_step_is_an_error_that_says_what_came(reply: HttpReply, says: str) -> None:
    with pytest.raises(UpstreamError, match=says):
        read_step(FAMILY["textcraft"], reply)


def test_an_error_in_a_200_is_told_from_a_broken_server() -> None:
    with pytest.raises(ErrorReplyError) as found:
        read_step(FAMILY["sciworld"], HttpReply(200, {"error": "The task has finished."}))
    assert found.value.text == "The task has finished."
    with pytest.raises(UpstreamError) as broken:
        read_step(FAMILY["sciworld"], HttpReply(500, {"error": "x"}))
    assert not isinstance(broken.value, ErrorReplyError)


def test_an_observation_that_stands_for_a_failure() -> None:
    with pytest.raises(UpstreamError, match="TimeoutError"):
        read_opening(FAMILY["webarena"], HttpReply(200, {"observation": "TimeoutError"}))
    other = FAMILY["textcraft"]
    assert read_opening(other, HttpReply(200, {"observation": "TimeoutError"})) == "TimeoutError"


def test_an_observation_may_come_as_a_text_or_in_an_object() -> None:
    assert read_observation(FAMILY["webshop"], HttpReply(200, "WebShop [SEP]")) == "WebShop [SEP]"
    assert (
        read_observation(FAMILY["babyai"], HttpReply(200, {"observation": "Your goal"}))
        == "Your goal"
    )


@pytest.mark.parametrize(
    ("kind", "rewards", "scores"),
    [
        ("latest", [0.0, 0.5, 0.25], [0.0, 0.5, 0.25]),
        ("sum", [0.25, 0.5, -0.5], [0.25, 0.75, 0.25]),
        ("max", [0.0, 0.5, 0.25], [0.0, 0.5, 0.5]),
    ],
)
def test_the_reward_of_an_episode(kind: str, rewards: list[float], scores: list[float]) -> None:
    score = RunningScore(overridden(FAMILY["textcraft"], {"reward_kind": kind}).reward_rule)
    assert [score.after(reward) for reward in rewards] == scores


def test_scores_are_scaled_and_a_range_that_is_left_is_an_error() -> None:
    sciworld = RunningScore(FAMILY["sciworld"].reward_rule)
    assert [sciworld.after(50), sciworld.after(-100)] == [0.5, -1.0]
    with pytest.raises(RewardError, match="dialect `textcraft`"):
        RunningScore(FAMILY["textcraft"].reward_rule).after(50)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"task_fiedl": "x"}, "has no `task_fiedl`"),
        ({"opening": "page"}, "can be fields, text, first, observe"),
        ({"reward_range": [1, 0]}, "expected \\[lowest, highest\\]"),
        ({"reward_range": [0, float("inf")]}, "expected \\[lowest, highest\\]"),
        ({"success_at": 100}, "every episode succeeds, or none"),
        ({"success_at": 0}, "every episode succeeds, or none"),
        ({"prefix": "maze"}, "start with a slash"),
        ({"done_fields": []}, "how would an episode end"),
        ({"opening_fields": []}, "where is a task's first text"),
    ],
)
def test_a_dialect_that_makes_no_sense_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(DialectError, match=says):
        overridden(FAMILY["textcraft"], changes)


def test_an_unknown_server_must_say_how_it_names_tasks() -> None:
    with pytest.raises(DialectError, match="task_field"):
        overridden(dialect_named("other"), {"reward_kind": "sum"})
    made = overridden(dialect_named("other"), {"task_field": "seed", "reward_kind": None})
    assert made == replace(dialect_named("other"), task_field="seed")
