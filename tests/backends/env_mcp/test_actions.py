"""What an agent's words mean to an MCP server, what it is told of tools, and what of results."""

from __future__ import annotations

import pytest

from agentc_backends.environments.external.environment import NotAnActionError
from agentc_backends.environments.mcp.translation import (
    FinalAnswer,
    ListedTool,
    McpCall,
    ToolActions,
    chosen,
    result_text,
)

ADD = ListedTool(
    "add",
    "Add two\n numbers. ",
    {
        "properties": {
            "left": {"type": "integer", "description": "The\nfirst."},
            "right": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "unit": {"enum": ["m", "km"]},
            "note": True,
        },
        "required": ["left"],
    },
)
LOOK = ListedTool("look", "", {"type": "object"})


def test_tools_are_told_with_their_arguments() -> None:
    assert ToolActions([ADD, LOOK], answers=True).told == (
        "Tools:\n"
        "add: Add two numbers.\n"
        "  left (integer, required): The first.\n"
        "  right (integer or null)\n"
        '  unit (one of "m", "km")\n'
        "  note (any)\n"
        "look\n"
        "An action is the name of a tool and a JSON object of its arguments, such as "
        '`add {"left": ...}`. `answer` and a text ends the task with that answer.'
    )


def test_calls_and_answers() -> None:
    actions = ToolActions([ADD, LOOK], answers=True)
    assert actions.read(' add\n{"left": 1,\n "right": {}} ') == McpCall(
        "add", {"left": 1, "right": {}}
    )
    assert actions.read('add{"left": 1}') == McpCall("add", {"left": 1})
    assert actions.read("look") == actions.read("look {}") == McpCall("look", {})
    assert actions.read("Answer: it is {4}") == FinalAnswer("it is {4}")
    assert actions.read("answer") == FinalAnswer("")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "That is no action"),
        ('{"left": 1}', "That is no action"),
        ("dance {}", "`dance` is no tool; there are add, look"),
        ("answer 4", "`answer` is no tool"),
        ("add 1 2", "What follows `add` is no JSON object"),
        ("add [1, 2]", "What follows `add` is no JSON object"),
        ('add {"left": 1', "What follows `add` is no JSON object"),
    ],
)
def test_what_is_no_call_is_told_what_would_be_one(text: str, says: str) -> None:
    with pytest.raises(NotAnActionError, match=says) as told:
        ToolActions([ADD, LOOK], answers=False).read(text)
    assert 'such as `add {"left": ...}`.' in str(told.value)


def test_which_tools_there_are() -> None:
    assert chosen([ADD, LOOK], ()) == [ADD, LOOK]
    assert chosen([ADD, LOOK], ["look"]) == [LOOK]
    with pytest.raises(ValueError, match="`tools` names `jump`, the server has `add`, `look`"):
        chosen([ADD, LOOK], ["jump"])
    with pytest.raises(ValueError, match="lists no tool"):
        ToolActions([], answers=False)
    answer = ListedTool("answer", "", {})
    assert ToolActions([answer], answers=False).read("answer {}") == McpCall("answer", {})
    with pytest.raises(ValueError, match="a tool `answer`, which is how agents give"):
        ToolActions([answer], answers=True)


def test_results_are_told_as_text() -> None:
    content = [
        {"type": "text", "text": "one\ntwo"},
        {"type": "image", "data": "", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "three"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": ""}},
        {"type": "resource_link", "uri": "file:///c", "name": "c"},
    ]
    assert result_text(content, {"n": 1}) == (
        "one\ntwo\n[image: image/png]\nthree\n[resource: file:///b]\n[resource: file:///c]"
    )
    assert result_text([], {"n": "é"}) == '{"n": "é"}'
    assert result_text([]) == "(no content)"
