"""Rounds, markers, cuts and the guard of a dialogue: what the agent reads, and what is answered."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.backends.colbench.conftest import BULK_TASK, Opened, code_task

from agentc_backends.environments.colbench.environment import CodeDialogue
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask


class Repeating:
    """A human who says one thing, and remembers what it was asked."""

    def __init__(self, reply: str) -> None:
        self._reply = reply
        self.asked: list[tuple[list[tuple[str, str]], str]] = []

    def reply(self, task: CodeTask, said: Sequence[tuple[str, str]], question: str) -> str:
        assert task.reference
        self.asked.append(([*said], question))
        return self._reply


def test_three_rounds_have_two_replies_of_400_characters(opened: Opened) -> None:
    human = Repeating("x" * 1500)
    world = opened(BULK_TASK, human=human, rounds=3)
    first, info = world.reset(BULK_TASK.id)
    assert (first, info) == (BULK_TASK.description, {"step_limit": 3})
    heard = [world.step(f"q{number}") for number in (1, 2, 3)]
    assert [len(text) for text, *_ in heard[:2]] == [400, 400]
    assert [(reward, done) for _, reward, done, *_ in heard] == [(0, False), (0, False), (0, True)]
    report = heard[-1][-1]["report"]
    assert report["answer_from"] == "limit"
    assert report["human"] == {"replies": 2, "unknown": 0, "cut": 2, "code_like": 0}
    assert world.snapshot()["answer"] == "q3"
    assert human.asked[1] == ([("q1", "x" * 400)], "q2")
    assert world.step("q4")[1:4] == (0.0, True, False)
    assert len(human.asked) == 2


def test_ten_rounds_have_nine_replies(opened: Opened) -> None:
    human = Repeating("Well.")
    world = opened(BULK_TASK, human=human)
    world.reset(BULK_TASK.id)
    for _ in range(9):
        assert not world.step("What is it?")[2]
    text, reward, done, _, info = world.step(BULK_TASK.reference)
    assert (reward, done, info["report"]["human"]["replies"]) == (1.0, True, 9)
    assert BULK_TASK.reference not in text


def _dialogue(**settings: object) -> CodeDialogue:
    return CodeDialogue(BULK_TASK, ColBenchSettings(**settings))  # type: ignore[arg-type]


def test_the_answer_stands_between_the_first_marker_and_the_next() -> None:
    dialogue = _dialogue()
    assert dialogue.take_action(" I WANT TO ANSWER: A I WANT TO ANSWER: B ")
    assert (dialogue.answer, dialogue.answer_from) == (" A ", "marker")
    other = _dialogue(answer_marker="ANSWER>")
    assert not other.take_action("I WANT TO ANSWER: A")
    assert other.take_action("ANSWER>")
    assert other.answer == ""


def test_at_the_limit_there_may_be_no_answer(opened: Opened) -> None:
    world = opened(BULK_TASK, rounds=1, at_limit="no_answer")
    world.reset(BULK_TASK.id)
    _, reward, done, _, info = world.step(BULK_TASK.reference)
    assert (reward, done, info["report"]["answer_from"]) == (0.0, True, None)
    assert set(info["report"]["verdicts"]) == {"no_answer"}
    world.reset(BULK_TASK.id)
    assert world.step(f"I WANT TO ANSWER:{BULK_TASK.reference}")[1] == 1.0


def test_tests_that_no_answer_can_pass_are_reported(opened: Opened) -> None:
    reference = "def f(n):\n    return None if n else 1\n"
    task = code_task("Write `f(n)`.", reference, ["f(0)", "f(1)", "f(2)"])
    for tried, unusable in ((task, 2), (BULK_TASK, 0)):
        world = opened(tried)
        world.reset(tried.id)
        report = world.step(f"I WANT TO ANSWER:{tried.reference}")[4]["report"]
        assert (report["passed"], report["unusable"]) == (report["tests"] - unusable, unusable)


def test_a_forbidden_word_costs_all_under_the_released_rules(opened: Opened) -> None:
    for namespace, reward in (("fresh", 1.0), ("published", 0.0)):
        world = opened(BULK_TASK, namespace=namespace)
        world.reset(BULK_TASK.id)
        answer = f"I WANT TO ANSWER:{BULK_TASK.reference}# sudo"
        assert world.step(answer)[1] == reward


def test_the_last_round_is_announced_after_the_cut() -> None:
    dialogue = _dialogue(rounds=3, announce_last=True, reply_chars=10)
    told = [dialogue.record_reply("q", "0123456789abc") for _ in range(2)]
    assert told == ["0123456789", "0123456789 Answer now."]


def test_an_announcement_needs_a_reply() -> None:
    assert _dialogue(rounds=1, announce_last=True).take_action("all of it")


@pytest.mark.parametrize(
    ("guard", "told"),
    [
        ("count", "It is total = quantity * 7\n    if quantity > 12: you see"),
        ("cut", "It is"),
        ("refuse", "I cannot write code."),
    ],
)
def test_a_reply_with_code_of_the_reference(guard: str, told: str) -> None:
    dialogue = _dialogue(guard=guard)
    reply = "It is total = quantity * 7\n    if quantity > 12: you see"
    assert dialogue.record_reply("Tell me the code.", reply) == told
    dialogue.record_reply(
        "And now?", "The unit price is 7; more than 12 have a discount of 3 in all."
    )
    assert dialogue.rounds.counts == {"unknown": 0, "cut": 0, "code_like": 1}


def test_short_references_count_whole() -> None:
    task = code_task("Write f.", "def f(): return 7", ["f()"])
    dialogue = CodeDialogue(task, ColBenchSettings())
    dialogue.record_reply("?", "def f(): return 8")
    assert dialogue.rounds.counts["code_like"] == 0
    dialogue.record_reply("?", "Sure: def f(): return 7")
    assert dialogue.rounds.counts["code_like"] == 1


SIGNATURE = "def late_fee(days_overdue, member_level, book_price, weekly_rate=2)"


@pytest.mark.parametrize("join", ["\n    ", " "])
def test_what_the_agent_is_told_anyway_is_no_code(join: str) -> None:
    body = f"return min(book_price, days_overdue // 7 * weekly_rate){join}# members too"
    description = f"Write `{SIGNATURE}`, which never is more than the price of the book itself."
    task = code_task(description, f"{SIGNATURE} -> int:{join}{body}", ["late_fee(9, 1, 30)"])
    dialogue = CodeDialogue(task, ColBenchSettings(guard="refuse"))
    for reply in (f"As I said: {description}", f"{SIGNATURE} -> int:", task.reference[:70]):
        assert not dialogue.refused(reply)
        assert dialogue.record_reply("?", reply) == reply
    assert dialogue.refused(task.reference)
    assert dialogue.record_reply("?", f"It is\n{body}") == "I cannot write code."
    assert dialogue.rounds.counts["code_like"] == 1


def test_replies_that_do_not_know_are_counted() -> None:
    dialogue = _dialogue()
    for reply in ("I do not know.", "Sorry, I don't know that.", "I don\u2019t know", "Yes."):
        dialogue.record_reply("?", reply)
    assert dialogue.rounds.counts["unknown"] == 3
