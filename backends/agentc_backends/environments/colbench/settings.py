"""Settings of `env.colbench_backend`, and the prompt of a model that plays the human.

The paper's prompt is under a licence that forbids to ship it: the default is ours, a spec may name
a file with another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentc.program.settings import only_with, setting
from agentc_backends.environments.colbench.tasks import DEFAULT, INVENTED, CodeTask

PLACES = ("description", "reference", "dialogue")
"""What a prompt has to show, as `{description}`; other braces stand for themselves."""
_RELEASED = {
    "problem_description": "description",
    "hidden_information": "reference",
    "dialogue_history": "dialogue",
}
"""The same places as a prompt of the released code names them."""
_PLACE = re.compile(rf"\{{({'|'.join((*PLACES, *_RELEASED))})\}}")
PROMPT = """\
You play somebody who needs a Python function and works with a programmer on it.

What you have asked for:
{description}

What you really want is this function. The programmer cannot see it:
{reference}

Answer the programmer's last question by what this function does. Where it says nothing about what \
is asked, say that you do not know. Never write code, and do not repeat the function. Say one or \
two short sentences and nothing else.

What was said so far:
{dialogue}

Your next reply:
"""
SYSTEM = "You are a person who talks with a programmer."
NO_CODE = "Your last try held code of the function. Say it in words, without any code."


def lacking_places(prompt: str) -> list[str]:
    """What a prompt does not show of a task."""
    shown = {_RELEASED.get(name, name) for name in _PLACE.findall(prompt)}
    return [place for place in PLACES if place not in shown]


def filled(prompt: str, task: CodeTask, dialogue: str) -> str:
    """In one pass: a description or a reply may hold such words itself."""
    values = {
        "description": task.description,
        "reference": task.reference,
        "dialogue": dialogue,
    }
    return _PLACE.sub(lambda found: values[_RELEASED.get(found[1], found[1])], prompt)


# fmt: off
_OF_INVENTED = only_with(
    "tasks", INVENTED, because="`tasks` names a file: nothing is invented")
_OF_PRICES = tuple(
    only_with(name, value, because="only `family: prices` has customs")
    for name, value in (("tasks", INVENTED), ("family", "prices")))
_OF_MODEL = only_with("human", "model", because="`human: scripted` calls no model")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColBenchSettings:
    # Paths stay out of the identity: digests of the tasks are in it.
    tasks: str = setting(
        "`invented`, or a JSONL file of `problem_description`, `ground_truth` and `test_cases`, as "
        "ColBench's are.", INVENTED, rule=False)
    splits: Mapping[str, Any] = setting(
        "Tasks of each split: `{own: train}` (or validation, test: 80, 10, 10 percent, by hash), "
        "`{range: [0, 5000]}` (the end is left out) or `{file: path}` (another file of tasks, with "
        "or without a range), each with `except: [other split]`, and `repeated: drop` where a file "
        "has a task twice. Splits that share a task are refused.", DEFAULT, rule=False)
    family: Literal["slots", "prices"] = setting(
        "Invented tasks: functions with hidden numbers, all of which have to be asked for "
        "(`slots`), or that price a thing which only the reference has (`prices`).", "slots",
        only_if=_OF_INVENTED)
    invented_tasks: int = setting("How many to invent.", 1000, minimum=10, maximum=1_000_000,
        only_if=_OF_INVENTED)
    invented_seed: int = setting("Seed of the invented tasks.", 0, seed=True, only_if=_OF_INVENTED)
    custom: float = setting(
        "Of `family: prices`: share of tasks that price what their place prices as a rule.",
        0.8, minimum=0, maximum=1, only_if=_OF_PRICES)
    careless: float = setting(
        "Of the expert of invented tasks: the probability that it leaves a question out, by seed; "
        "it guesses what it does not know. 0: it requests all that it needs.", 0.0,
        minimum=0, maximum=1,
        only_if=_OF_INVENTED)
    wander: float = setting(
        "The probability that it wastes a turn, before each question.", 0.0, minimum=0, maximum=1,
        only_if=_OF_INVENTED)
    reveal: str | None = setting(
        "What a description begins with, the reference in place of `{reference}`: for practice, of "
        "an agent that reads all. With the words of a critic's `template` its first training can "
        "teach it to read what only the critic will see. null: an agent reads nothing.", None,
        pattern=r"\{reference\}")
    rounds: int = setting(
        "Replies of the agent; the human speaks after all but the last.", 10, minimum=1, maximum=50)
    at_limit: Literal["whole_reply", "no_answer"] = setting(
        "What the last reply is without the marker: all of it is the answer, or there is none.",
        "whole_reply")
    announce_last: bool = setting(
        "End the human's last reply with `Answer now.`", False)
    answer_marker: str = setting(
        "What follows it, up to the next one, is the answer.", "I WANT TO ANSWER:", pattern="\\S")
    reply_chars: int = setting(
        "The human's replies are cut after as many characters.", 400, minimum=10, maximum=100_000)
    human: Literal["scripted", "model"] = setting(
        "Who answers. `scripted`: gives one fact to a question about it; invented tasks bring "
        "their facts along, those of external tasks are read off the reference, which is weak "
        "and for trying things out. `model`: the model that `simulator` names, which is shown the "
        "reference.", "scripted")
    human_temperature: float = setting(
        "Of a model's replies.", 0.0, minimum=0, maximum=2, only_if=_OF_MODEL)
    human_max_tokens: int = setting("Of a model's reply.", 4096, minimum=1, maximum=1_000_000,
        only_if=_OF_MODEL)
    human_prompt: str | None = setting(
        "A file of text with places for `{description}`, `{reference}` and `{dialogue}`, or as "
        "the released code names them, in place of our own words.", None, rule=False,
        only_if=_OF_MODEL)
    human_system: str = setting(
        "The system message of a model that plays the human; the released one is `You are a "
        "helpful assistant.`", SYSTEM, pattern="\\S", only_if=_OF_MODEL)
    human_dialogue: Literal["lines", "published"] = setting(
        "How a model reads the dialogue. `lines`: a line for each reply. `published`: as the "
        "released code writes it, the description first and `agent:` at the end.", "lines",
        only_if=_OF_MODEL)
    human_seeding: Literal["text", "none"] = setting(
        "Of a model's replies. `text`: follows from the dialogue, so that a fork hears the same; "
        "`none`: no seed is sent, as in the released code.", "text", only_if=_OF_MODEL)
    guard: Literal["count", "cut", "refuse"] = setting(
        "What becomes of a human's reply with 40 characters of the reference in a row: it is "
        "counted, cut before them, or replaced by `I cannot write code.` (a model is asked once "
        "more before).", "count")
    reward: Literal["tests_passed", "all_tests"] = setting(
        "The share of the tests that pass, or 1 where all do. A success is all of them.",
        "tests_passed")
    namespace: Literal["fresh", "published"] = setting(
        "`fresh`: an answer is a module. `published`: as the released evaluator has it, where "
        "functions do not see each other, nor themselves, and words such as `import os` or `sudo` "
        "fail an answer; for comparisons with its numbers.",
        "fresh")
    test_timeout_s: float = setting(
        "Processor time for each test.", 1.0, above=0, maximum=600)
    memory_mb: int = setting("Memory for each test.", 512, minimum=64, maximum=1_000_000)
    output_bytes: int = setting(
        "Size of a test's value.", 65536, minimum=64, maximum=100_000_000)
    sandbox: Literal["auto", "bubblewrap", "landlock"] = setting(
        "The box that answers run in; `auto`: bubblewrap if it works on the machine, else "
        "Landlock. There is no running without one.", "auto", identity="placement")
    human_prompt_sha256: str | None = setting(
        "What the human's prompt has to be.", None, in_spec=False)
    tasks_sha256: str | None = setting("What the files' tasks have to be.", None, in_spec=False)

    @property
    def is_invented(self) -> bool:
        return self.tasks == INVENTED
