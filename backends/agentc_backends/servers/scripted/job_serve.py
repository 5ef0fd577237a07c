"""Serves scripted replies until SIGTERM: `python -m agentc_backends.servers.scripted.job_serve`.

A `TextModel` whose tokens are bytes and whose replies follow rules. Every token has the probability
1/vocabulary, so that scoring is consistent with generation."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from agentc_backends.data.chat.tool_calls import plain_messages
from agentc_backends.openai_api.application import create_app
from agentc_backends.openai_api.process import add_process_arguments, prepare_process, serve
from agentc_backends.openai_api.text_model import Choice, Sampling, TokenListener, TokenScore


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


_END = 256
_ROLES = ("system", "user", "assistant")
_FIRST_ROLE = 257
_VOCABULARY = _FIRST_ROLE + len(_ROLES)
_SPECIAL = {_END: "<end>", **{_FIRST_ROLE + i: f"<{role}>" for i, role in enumerate(_ROLES)}}
_LOGPROB = -math.log(_VOCABULARY)


class ScriptedModel:
    """Rules behind the API. `delay_s` passes before each reply, as if it were computed."""

    def __init__(
        self, rules: Sequence[ReplyRule], *, root: str, max_model_len: int, delay_s: float = 0.0
    ) -> None:
        self._rules = tuple(rules)
        self._root = root
        self._length = max_model_len
        self._delay = delay_s

    @property
    def root(self) -> str:
        return self._root

    @property
    def max_model_len(self) -> int:
        return self._length

    @property
    def longest_token(self) -> int:
        return 1

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return list(text.encode("utf-8", "surrogatepass"))

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool,
        continue_final_message: bool,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> list[int]:
        messages = plain_messages(messages, tools)
        tokens: list[int] = []
        for message in messages:
            if message["role"] not in _ROLES:
                raise ValueError(f"unknown role {message['role']!r}; known: {', '.join(_ROLES)}")
            tokens.append(_FIRST_ROLE + _ROLES.index(message["role"]))
            tokens += self.encode(message["content"], add_special_tokens=False)
            tokens.append(_END)
        if continue_final_message:
            tokens.pop()
        if add_generation_prompt:
            tokens.append(_FIRST_ROLE + _ROLES.index("assistant"))
        return tokens

    def check_grammar(self, grammar: str) -> None:
        raise ValueError(
            "a scripted server says what its rules say, and holds no reply to a form: no "
            "tool_choice that demands a call, no response_format, no strict functions"
        )

    def decode(self, tokens: Sequence[int]) -> str:
        parts: list[str] = []
        pending = bytearray()
        for token in tokens:
            if token in _SPECIAL:
                parts += [pending.decode("utf-8", "replace"), _SPECIAL[token]]
                pending.clear()
            else:
                pending.append(token)
        return "".join(parts) + pending.decode("utf-8", "replace")

    def check_tokens(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            if not 0 <= token < _VOCABULARY:
                raise ValueError(f"token id {token} is outside the vocabulary of {_VOCABULARY}")

    def reply_text(self, tokens: Sequence[int]) -> str:
        return self.decode([token for token in tokens if token != _END])

    async def generate(
        self, prompt: Sequence[int], sampling: Sampling, listener: TokenListener | None = None
    ) -> list[Choice]:
        await asyncio.sleep(self._delay)
        seed = secrets.randbits(64) if sampling.seed is None else sampling.seed
        messages = _conversation(prompt)
        choices = [self._choice(messages, sampling, seed, index) for index in range(sampling.n)]
        if listener is not None:
            for index, choice in enumerate(choices):
                for token in choice.tokens:
                    listener(index, (token,))
                await asyncio.sleep(0)
        return choices

    async def score(self, tokens: Sequence[int], alternatives: int) -> list[TokenScore]:
        first, *rest = tokens
        return [TokenScore(first, None), *(_scored(token, alternatives) for token in rest)]

    async def reload(self, path: str) -> None:
        self._root = path

    def _choice(
        self,
        messages: Sequence[Mapping[str, str]],
        sampling: Sampling,
        seed: int,
        index: int,
    ) -> Choice:
        text = choose_reply(
            self._rules, messages, temperature=sampling.temperature, seed=seed, index=index
        )
        tokens = [*self.encode(text, add_special_tokens=False), _END]
        if sampling.ignore_eos:
            tokens *= -(-sampling.max_tokens // len(tokens))
        whole, tokens = tokens, tokens[: sampling.max_tokens]
        text = self.reply_text(tokens)
        cuts = {at: stop for stop in sampling.stop if (at := text.find(stop)) >= 0}
        stopped = bool(cuts) or (len(tokens) == len(whole) and not sampling.ignore_eos)
        scores: tuple[TokenScore, ...] = ()
        if sampling.logprobs is not None:
            scores = tuple(_scored(token, sampling.logprobs) for token in tokens)
        return Choice(
            text=text[: min(cuts)] if cuts else text,
            tokens=tuple(tokens),
            finish_reason="stop" if stopped else "length",
            scores=scores,
            stop_reason=cuts[min(cuts)] if cuts else None,
        )


def _scored(token: int, alternatives: int) -> TokenScore:
    others = [token, *(t for t in range(alternatives) if t != token)][:alternatives]
    return TokenScore(token, _LOGPROB, tuple((t, _LOGPROB) for t in others))


def _conversation(prompt: Sequence[int]) -> list[dict[str, str]]:
    """The messages that a prompt was made of; a bare text counts as one user message. An
    assistant message left open at the end is the one to be written."""
    messages: list[dict[str, str]] = []
    content = bytearray()
    role = "user"
    for token in [*prompt, _END]:
        if token < _END:
            content.append(token)
            continue
        if content or (token == _END and role != "assistant"):
            messages.append({"role": role, "content": content.decode("utf-8", "replace")})
        content.clear()
        role = "assistant" if token == _END else _ROLES[token - _FIRST_ROLE]
    return messages


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    token = prepare_process(options)
    try:
        entries = json.loads(
            options.rules_file.read_text() if options.rules_file else options.rules
        )
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise ValueError("rules must be a list of objects")
        rules = read_rules(entries)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    model = ScriptedModel(
        rules, root=options.model, max_model_len=options.max_model_len, delay_s=options.delay
    )
    app = create_app(model, options.served_name, token=token)
    # Replies under way are at most a sleep, which uvicorn's grace ends.
    serve(app, options, facts={"root": model.root}, on_stop=lambda: None)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="servers.scripted.job_serve", description=__doc__)
    add_process_arguments(parser)
    parser.add_argument("--model", default="scripted", help="reported as the model's root")
    parser.add_argument("--rules", default="[]", help="JSON; see ReplyRule")
    parser.add_argument("--rules-file", type=Path, help="a file with the same, instead")
    parser.add_argument("--max-model-len", type=int, default=65536, help="in bytes of text")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply")
    return parser


if __name__ == "__main__":
    sys.exit(main())
