"""Which messages of a row enter the loss, by the stage's `loss_on`: never what others said."""

from __future__ import annotations

import pytest

from agentc_backends.data.chat.rows import trained_turns

ROW = {
    "prompt_length": 4,
    "messages": [
        {"role": "system", "content": "Act."},
        {"role": "user", "content": "Say OK."},
        {"role": "assistant", "content": "OK"},
        {"role": "user", "content": "Goal: craft a stick."},
        {"role": "assistant", "content": "Action: jump", "loss": False},
        {"role": "user", "content": "Could not execute jump"},
        {"role": "assistant", "content": "Action: wait", "loss": True},
        {"role": "user", "content": "ok."},
        {"role": "assistant", "content": "Action: get 1 plank"},
    ],
}


@pytest.mark.parametrize(
    ("loss_on", "expected"),
    [("all_replies", {2, 4, 6, 8}), ("after_prompt", {4, 6, 8}), ("marked", {6, 8})],
)
def test_trained_turns(loss_on: str, expected: set[int]) -> None:
    assert trained_turns(ROW, loss_on) == expected
