"""Rules: which reply a conversation gets.

Neighbours: `scripted_model.py` (tokens), `backend.py` (how a spec writes rules).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any


@dataclass(frozen=True, slots=True)
class ReplyRule:
    """Applies when `match` (None: always) is found in the last user message and `turn` (None:
    any) equals the number of replies given so far. `replies` are alternatives; `\\1` and
    `\\g<name>` in them stand for groups of the match."""

    replies: tuple[str, ...]
    match: re.Pattern[str] | None = None
    turn: int | None = None

    def apply(self, turn: int, message: str) -> list[str] | None:
        """The alternatives for a turn, or None when the rule does not apply."""
        if self.turn is not None and self.turn != turn:
            return None
        if self.match is None:
            return list(self.replies)
        found = self.match.search(message)
        return None if found is None else [found.expand(reply) for reply in self.replies]


def read_rules(entries: Sequence[Mapping[str, Any]]) -> list[ReplyRule]:
    """Rules from JSON: `{"match"?: regular expression, "turn"?: int, "reply": text or texts}`.

    Raises ValueError naming the entry that is wrong.
    """
    rules = []
    for index, entry in enumerate(entries):
        try:
            rules.append(_rule(entry))
        except (ValueError, re.error) as error:
            raise ValueError(f"rules[{index}]: {error}") from error
    return rules


def choose_reply(
    rules: Sequence[ReplyRule],
    messages: Sequence[Mapping[str, str]],
    *,
    temperature: float,
    seed: int,
    index: int,
) -> str:
    """The reply of the first rule that applies; "" when none does.

    Alternatives are drawn by a hash of (conversation, seed, index) when the temperature is above
    0; at 0 it is always the first.
    """
    turn = sum(message["role"] == "assistant" for message in messages)
    last = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
    for rule in rules:
        replies = rule.apply(turn, last)
        if replies is not None:
            if temperature == 0.0 or len(replies) == 1:
                return replies[0]
            return replies[_draw(messages, seed, index) % len(replies)]
    return ""


def _rule(entry: Mapping[str, Any]) -> ReplyRule:
    unknown = set(entry) - {"match", "turn", "reply"}
    if unknown:
        raise ValueError(f"unknown keys: {', '.join(sorted(unknown))}; known: match, turn, reply")
    reply, turn, pattern = entry.get("reply"), entry.get("turn"), entry.get("match")
    replies = [reply] if isinstance(reply, str) else reply
    if not isinstance(replies, list) or not replies or not all(isinstance(r, str) for r in replies):
        raise ValueError("reply must be a text or a list of texts")
    if turn is not None and (isinstance(turn, bool) or not isinstance(turn, int)):
        raise ValueError("turn must be an integer")
    if pattern is not None and not isinstance(pattern, str):
        raise ValueError("match must be a regular expression")
    rule = ReplyRule(
        tuple(replies), None if pattern is None else re.compile(pattern, re.DOTALL), turn
    )
    if rule.match is not None:
        _check_groups(rule.match, replies)
    return rule


def _check_groups(pattern: re.Pattern[str], replies: Sequence[str]) -> None:
    """Find references to groups that do not exist before any conversation does."""
    for reply in replies:
        for group in re.findall(r"\\(\d+)", reply):
            if int(group) > pattern.groups:
                raise ValueError(f"reply refers to group {group}; match has {pattern.groups}")


def _draw(messages: Sequence[Mapping[str, str]], seed: int, index: int) -> int:
    text = "\0".join(f"{m['role']}\1{m['content']}" for m in messages)
    digest = blake2b(f"{seed}\0{index}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")
