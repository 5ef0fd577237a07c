"""Post-conditions of row artifacts: trajectories, conversations, preference pairs; what they share
with `tree_contracts`.

Each check yields findings `(file, row, field, message)`; rows count from 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.program.artifact_files import (
    CANDIDATES_FILE,
    EPISODES_FILE,
    PAIRS_FILE,
    PRIVILEGED_FILE,
    ROWS_FILE,
    SCORES_FILE,
    TRAJECTORIES_FILE,
    TREES_FILE,
    TURNS_FILE,
)

if TYPE_CHECKING:
    from agentc.runtime.contracts.artifacts import Artifact

Finding = tuple[str, int | None, str | None, str]

_MARKS = {"cut", "loss", "raw", "tools"}
_CALL = "<tool_call>"
"""What a call of a function begins with, in the text of a reply."""
ENDS = ("success", "failure", "limit", "overflow", "error")
OUTCOMES = ("win", "lose", "self")
SOURCES = ("expert", "policy")
_ROWS = (
    *(TRAJECTORIES_FILE, ROWS_FILE, PAIRS_FILE, TREES_FILE, PRIVILEGED_FILE),
    *(CANDIDATES_FILE, SCORES_FILE, TURNS_FILE, EPISODES_FILE),
)


def check_trajectories(artifact: Artifact) -> Iterator[Finding]:
    """Episodes: alternating turns, rewards in range, infrastructure errors without a reward."""
    name = TRAJECTORIES_FILE
    previous: str | None = None
    finished: set[str] = set()
    last_attempt = -1
    for number, row in rows_of(artifact, name):
        if isinstance(row, str):
            yield (name, number, None, row)
            continue
        for field, message in episode_findings(row, artifact.contract):
            yield (name, number, field, message)
        task, attempt = row.get("task_id"), row.get("attempt")
        if not isinstance(task, str) or not isinstance(attempt, int):
            continue
        if task != previous:
            if task in finished:
                yield (name, number, "task_id", f"rows of task {task!r} are not adjacent")
            if previous is not None:
                finished.add(previous)
            previous, last_attempt = task, -1
        if attempt <= last_attempt:
            yield (name, number, "attempt", "attempts of a task must ascend")
        last_attempt = attempt


def check_conversations(artifact: Artifact) -> Iterator[Finding]:
    """Conversations to imitate: each has an agent reply after its prompt."""
    name = ROWS_FILE
    for number, row in rows_of(artifact, name):
        if isinstance(row, str):
            yield (name, number, None, row)
            continue
        for field, message in _conversation_findings(row, replies_required=True):
            yield (name, number, field, message)
        for message in reward_findings(row.get("reward"), artifact.contract, nullable=True):
            yield (name, number, "reward", message)


def check_pairs(artifact: Artifact) -> Iterator[Finding]:
    """Pairs: both sides start and end with the agent, differ, and the chosen one scored more."""
    name = PAIRS_FILE
    for number, row in rows_of(artifact, name):
        if isinstance(row, str):
            yield (name, number, None, row)
            continue
        for field, message in _pair_findings(row, artifact.contract):
            yield (name, number, field, message)


def message_findings(messages: Any, first: str | None = None) -> Iterator[str]:
    """What is wrong with a list of messages: roles, contents, alternation. A leading system
    message is allowed unless `first` names the role that must open; behind one with functions
    (`tools`), behind what `first` opens, or behind a call, results of the role `tool` may answer
    the agent."""
    if not isinstance(messages, list) or not messages:
        yield "expected a non-empty list of messages"
        return
    expected = first
    answers = ("user",) if first is None else ("user", "tool")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or set(message) - _MARKS != {"role", "content"}:
            yield "message %d: expected {role, content}, found %s" % (index, abbreviated(message))
            return
        role = message["role"]
        if "loss" in message and (role != "assistant" or not isinstance(message["loss"], bool)):
            yield f"message {index}: loss is true or false, and only of the agent's messages"
        if not isinstance(message["content"], str):
            yield f"message {index}: content is not text"
        elif "raw" in message:
            raw = message["raw"]
            if role != "assistant" or not isinstance(raw, str) or message["content"] not in raw:
                yield f"message {index}: raw is the agent's whole text, which holds its content"
        opens = role == "system" and index == 0 and first is None
        if "tools" in message:
            if not opens or not _are_functions(message["tools"]):
                yield f"message {index}: tools are functions, only of a leading system message"
                return
            answers = ("user", "tool")
        if opens:
            expected = "user"
        elif role == "tool" and not (
            index
            and messages[index - 1]["role"] == "assistant"
            and (role in answers or _CALL in str(messages[index - 1]["content"]))
        ):
            yield f"message {index}: a result of a function, where none is called"
            return
        elif role not in ("user", "tool", "assistant"):
            yield f"message {index}: role {role!r} is not one of user, assistant"
            return
        elif expected is not None and role != expected and role != "tool":
            yield f"message {index}: expected {expected}, found {role}; turns alternate"
            return
        else:
            expected = "user" if role == "assistant" else "assistant"


def _are_functions(tools: Any) -> bool:
    return (
        isinstance(tools, list)
        and bool(tools)
        and all(isinstance(tool, dict) and tool.get("type") == "function" for tool in tools)
    )


def rows_of(artifact: Artifact, name: str) -> Iterator[tuple[int, Any]]:
    """Rows with their numbers (from 1; 0 stands for the whole file). A text instead of a row says
    what is wrong with it."""
    path = artifact.data / name
    least = artifact.contract.get("min_rows", 1)
    count = 0
    ids: dict[str, int] = {}
    forbidden = _forbidden_tasks(artifact)
    if not path.is_file():
        yield 0, "the file is missing"
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            count += 1
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield number, f"not JSON: {error}"
                continue
            if not isinstance(row, dict):
                yield number, f"expected an object, found {abbreviated(row)}"
                continue
            name_of_row = row.get("id")
            if not isinstance(name_of_row, str) or not name_of_row:
                yield number, f"id: expected text, found {abbreviated(name_of_row)}"
            elif name_of_row in ids:
                yield number, f"id: {name_of_row!r} is in row {ids[name_of_row]} already"
            else:
                ids[name_of_row] = number
            task = row.get("task_id")
            if not isinstance(task, str) or not task:
                yield number, f"task_id: expected text, found {abbreviated(task)}"
            elif task in forbidden:
                yield number, f"task_id: {task!r} also occurs in the input {forbidden[task]}"
            yield number, row
    if count < least:
        yield 0, f"{count} rows; expected at least {least}"


def _forbidden_tasks(artifact: Artifact) -> dict[str, str]:
    """Tasks that inputs of the roles in `disjoint_from` hold, with the role."""
    found: dict[str, str] = {}
    roles = artifact.contract.get("disjoint_from") or []
    for role in [roles] if isinstance(roles, str) else roles:
        for directory in artifact.inputs.get(role, []):
            for name in _ROWS:
                path = Path(directory) / name
                if path.is_file():
                    with path.open(encoding="utf-8") as lines:
                        for line in lines:
                            if line.strip():
                                found[json.loads(line)["task_id"]] = role
    return found


def episode_findings(row: Mapping[str, Any], contract: Mapping[str, Any]) -> Iterator[Any]:
    end = row.get("end")
    failed = end == "error"
    if end not in ENDS:
        yield "end", f"{abbreviated(end)} is not one of {', '.join(ENDS)}"
    # A prompt longer than the server's context leaves the agent no turn at all.
    yield from _conversation_findings(row, replies_required=end not in ("error", "overflow"))
    yield from _identity_findings(row)
    yield from _verdict_findings(row, contract)
    if row.get("source") not in SOURCES:
        yield "source", f"{abbreviated(row.get('source'))} is not one of {', '.join(SOURCES)}"
    turns = _replies(row)
    yield from _turn_count_findings(row, turns)
    if "report" in row and not isinstance(row["report"], dict):
        yield "report", f"expected an object, found {abbreviated(row['report'])}"
    if "choices" in row and not failed:
        for message in _choice_findings(row["choices"], turns - _prefix_turns(row)):
            yield "choices", message
    if "origin" in row and not failed:
        for message in _origin_findings(row, turns):
            yield "origin", message


def _identity_findings(row: Mapping[str, Any]) -> Iterator[Any]:
    """`id` is made of the task and the attempt."""
    task, attempt = row.get("task_id"), row.get("attempt")
    expected = f"{task}#{attempt}"
    if not is_integer(attempt) or attempt < 0:  # type: ignore[operator]
        yield "attempt", f"expected a number from 0, found {abbreviated(attempt)}"
    elif row.get("id") != expected:
        yield "id", f"expected {expected!r}, found {abbreviated(row.get('id'))}"


def _verdict_findings(row: Mapping[str, Any], contract: Mapping[str, Any]) -> Iterator[Any]:
    """`success` and `reward` agree with how the episode ended."""
    if not isinstance(row.get("success"), bool):
        yield "success", f"expected true or false, found {abbreviated(row.get('success'))}"
    if row.get("end") == "error":
        if row.get("reward") is not None:
            yield "reward", "an infrastructure error has no reward; expected null"
        if row.get("success") is True:
            yield "success", "an infrastructure error is no success"
        return
    for message in reward_findings(row.get("reward"), contract, nullable=True):
        yield "reward", message
    if row.get("end") == "success" and row.get("success") is False:
        yield "success", "is false although the episode ended in success"


def _turn_count_findings(row: Mapping[str, Any], turns: int) -> Iterator[Any]:
    """`turns` counts the agent's replies, and each has a reward."""
    if row.get("turns") != turns:
        yield "turns", f"is {abbreviated(row.get('turns'))}, but the agent replied {turns} times"
    rewards = row.get("rewards")
    if not isinstance(rewards, list) or not all(is_finite(value) for value in rewards):
        yield "rewards", f"expected a list of numbers, found {abbreviated(rewards)}"
    elif len(rewards) != turns and row.get("end") != "error":
        yield "rewards", f"{len(rewards)} rewards for {turns} turns"


def _choice_findings(choices: Any, turns: int) -> Iterator[str]:
    """One for each reply of the policy, which is the first of those with the largest advantage."""
    if not isinstance(choices, list) or len(choices) != turns:
        yield f"expected one for each of {turns} replies, found {abbreviated(choices)}"
        return
    for index, choice in enumerate(choices):
        if not isinstance(choice, dict) or set(choice) != {"taken", "distinct", "advantages"}:
            yield f"{index}: expected {{taken, distinct, advantages}}, found {abbreviated(choice)}"
            continue
        taken, distinct, values = choice["taken"], choice["distinct"], choice["advantages"]
        if values is None:
            if (taken, distinct) != (0, 1):
                yield f"{index}: without advantages all replies are alike, and the first is taken"
        elif not isinstance(values, list) or not values or not all(map(is_finite, values)):
            yield f"{index}: advantages: expected numbers, found {abbreviated(values)}"
        elif taken != values.index(max(values)):
            best = values.index(max(values))
            yield f"{index}: took {abbreviated(taken)}, but reply {best} has the largest advantage"
        elif not is_integer(distinct) or not 1 < distinct <= len(values):
            yield f"{index}: distinct: {abbreviated(distinct)} of {len(values)} replies"


def _prefix_turns(row: Mapping[str, Any]) -> int:
    """The turns that an episode took over."""
    origin = row.get("origin")
    given: Any = origin.get("turns") if isinstance(origin, dict) else 0
    return given if is_integer(given) else 0


def _origin_findings(row: Mapping[str, Any], turns: int) -> Iterator[str]:
    """The turns that an episode took over are its first ones, and marked as not its policy's."""
    origin = row["origin"]
    if not isinstance(origin, dict) or not isinstance(origin.get("id"), str):
        yield f"expected the trajectory that it continues from, found {abbreviated(origin)}"
        return
    given: Any = origin.get("turns")
    if not is_integer(given) or not 0 <= given <= turns:
        yield f"expected 0 to {turns} turns, found {abbreviated(given)}"
        return
    messages, first = row.get("messages"), row.get("prompt_length")
    if not isinstance(messages, list) or not is_integer(first):
        return
    replies = messages[first::2]
    marked = [isinstance(m, dict) and m.get("loss") is False for m in replies]
    if marked != [number < given for number in range(len(replies))]:
        yield f"its {given} turns, and no others, are marked `loss: false`"


def _conversation_findings(row: Mapping[str, Any], replies_required: bool) -> Iterator[Any]:
    messages = row.get("messages")
    wrong = list(message_findings(messages))
    for message in wrong:
        yield "messages", message
    if wrong or not isinstance(messages, list):
        return
    length = row.get("prompt_length")
    if not is_integer(length) or not 0 <= length <= len(messages):  # type: ignore[operator]
        yield (
            "prompt_length",
            f"expected a number from 0 to {len(messages)}, found {abbreviated(length)}",
        )
        return
    assert isinstance(length, int)
    if length == len(messages):
        if replies_required:
            yield "messages", f"no agent reply follows the prompt of {length} messages"
    elif messages[length]["role"] != "assistant":
        yield (
            "prompt_length",
            "message %d is the %s's, not the agent's first reply"
            % (length, messages[length]["role"]),
        )


def _pair_findings(row: Mapping[str, Any], contract: Mapping[str, Any]) -> Iterator[Any]:
    prompt_wrong = list(message_findings(row.get("prompt")))
    for message in prompt_wrong:
        yield "prompt", message
    if not prompt_wrong and row["prompt"][-1]["role"] == "assistant":
        yield "prompt", "ends with the agent's message; the continuations start with it"
    for side in ("chosen", "rejected"):
        wrong = list(message_findings(row.get(side), first="assistant"))
        for message in wrong:
            yield side, message
        if not wrong and row[side][-1]["role"] != "assistant":
            yield side, "does not end with the agent's message"
    if row.get("chosen") == row.get("rejected"):
        yield "rejected", "is the same as chosen"
    rewards: list[float] = []
    for field in ("chosen_reward", "rejected_reward"):
        wrong = list(reward_findings(row.get(field), contract, nullable=False))
        for message in wrong:
            yield field, message
        if not wrong:
            rewards.append(row[field])
    if len(rewards) == 2 and not rewards[0] > rewards[1]:
        yield "chosen_reward", "{:g} is not above the rejected reward {:g}".format(*tuple(rewards))
    if row.get("outcome") not in OUTCOMES:
        yield (
            "outcome",
            f"{abbreviated(row.get('outcome'))} is not one of {', '.join(OUTCOMES)}",
        )


def reward_findings(reward: Any, contract: Mapping[str, Any], nullable: bool) -> Iterator[str]:
    if reward is None and nullable:
        return
    if not is_finite(reward):
        yield f"expected a number, found {abbreviated(reward)}"
        return
    span = contract.get("reward_range")
    # Sums of floats may pass a bound by a rounding error.
    if span is not None and not span[0] - 1e-6 <= reward <= span[1] + 1e-6:
        yield f"{reward:g} is outside the environment's range [{span[0]:g}, {span[1]:g}]"


def _replies(row: Mapping[str, Any]) -> int:
    messages, length = row.get("messages"), row.get("prompt_length")
    if not isinstance(messages, list) or not isinstance(length, int):
        return 0
    return sum(1 for m in messages[length:] if isinstance(m, dict) and m.get("role") == "assistant")


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def abbreviated(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
