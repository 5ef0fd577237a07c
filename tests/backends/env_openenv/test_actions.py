"""How actions are filled and observations told, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from agentc_backends.environments.external.environment import NotAnActionError
from agentc_backends.environments.openenv.translation import (
    JsonAction,
    ReplyError,
    TextAction,
    read_observed,
)

ECHO = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object"},
        "message": {"type": "string", "description": "Message to echo back"},
    },
    "required": ["message"],
}
MOVE = {
    "properties": {
        "metadata": {},
        "column": {"type": "integer"},
        "why": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "weights": {"type": "array"},
        "sure": {"type": "boolean"},
    },
    "required": ["column", "sure"],
}


def test_a_text_fills_the_only_field_that_is_asked_for() -> None:
    assert TextAction(ECHO, None, {}).read(" hello\n") == {"message": " hello\n"}


def test_numbers_and_words_are_read_as_the_field_says() -> None:
    column = TextAction(MOVE, None, {"sure": True})
    assert column.read(" 3 ") == {"sure": True, "column": 3}
    with pytest.raises(NotAnActionError, match="`three` is no action: `column` is a integer"):
        column.read("three")
    sure = TextAction(MOVE, "sure", {"column": 1})
    assert [sure.read(word)["sure"] for word in ("True", "false")] == [True, False]
    with pytest.raises(NotAnActionError):
        sure.read("perhaps")
    assert TextAction(MOVE, "why", {"column": 1, "sure": False}).read("so")["why"] == "so"


@pytest.mark.parametrize(
    ("schema", "field", "constants", "says"),
    [
        (MOVE, None, {}, "name the one that an agent's words go to"),
        (MOVE, "colum", {}, "`action_field` is `colum`"),
        (MOVE, "column", {}, "an action needs `sure` too"),
        (MOVE, "column", {"sur": 1}, "`action` names `sur`"),
        (MOVE, "weights", {"column": 1, "sure": True}, "no text or number"),
        ({"properties": {}}, None, {}, "no fields"),
    ],
)
def test_what_could_be_meant_in_several_ways_is_refused(
    schema: dict[str, Any], field: str | None, constants: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        TextAction(schema, field, constants)


def test_objects_are_held_to_their_fields() -> None:
    move = JsonAction(MOVE, {"sure": True})
    assert move.told == (
        "An action is a JSON object with: column (integer, required), why (string), "
        "weights (array)."
    )
    assert move.read('{"column": 2}') == {"sure": True, "column": 2}
    for text, says in (
        ("column 2", "no JSON object"),
        ("[1]", "no JSON object"),
        ("[" * 10_000, "no JSON object"),
        ("{}", "needs the field `column`"),
        ('{"column": 1, "row": 2}', "has no field `row`"),
    ):
        with pytest.raises(NotAnActionError, match=says):
            move.read(text)


def test_observations_are_told_field_by_field() -> None:
    observation = {"text": "hi", "cards": [1, 2], "none": None, "metadata": {"x": 1}}
    data = {"observation": observation, "reward": None, "done": False}
    assert read_observed(data, ()).text == "text: hi\ncards: [1, 2]"
    told = read_observed({**data, "reward": 1, "done": True}, ("text",))
    assert (told.text, told.reward, told.done) == ("hi", 1.0, True)
    with pytest.raises(ReplyError, match="no field `txt`; its fields: `text`"):
        read_observed(data, ("txt",))
    for wrong in ({"reward": "1"}, {"reward": float("nan")}, {"done": None}, {"observation": "x"}):
        with pytest.raises(ReplyError):
            read_observed({**data, **wrong}, ())
