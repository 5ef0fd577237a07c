"""What a server must supply: a `TextModel` that encodes, generates and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

TokenListener: TypeAlias = Callable[[int, Sequence[int]], None]
"""Hears the tokens of a choice (its index, what has come) on the event loop, as they are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How to continue a prompt.

    `temperature` 0 is greedy. `seed` fixes each choice by itself: choice i of a request depends
    on (prompt, settings, seed, i) and on nothing else. `logprobs` is None for none, else the
    number of alternatives reported at each position. `stop` texts end a choice and are cut off.
    `grammar` is what a reply is held to (`conversation.py`).
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int | None = None
    n: int = 1
    logprobs: int | None = None
    ignore_eos: bool = False
    grammar: str | None = None


@dataclass(frozen=True, slots=True)
class TokenScore:
    """A token with its natural-log probability under the model's own distribution (before
    temperature and top_p); None at the first position of a text. `top` lists alternatives."""

    token: int
    logprob: float | None
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One continuation. `tokens` holds all generated tokens, those of a stop text and the
    end-of-sequence token included; `text` is cut before them."""

    text: str
    tokens: tuple[int, ...]
    finish_reason: Literal["stop", "length"]
    scores: tuple[TokenScore, ...] = ()
    stop_reason: str | None = None
    """The stop text that ended it, where one did."""


class TextModel(Protocol):
    """A served model. Its coroutines may be cancelled when a client goes away."""

    @property
    def root(self) -> str:
        """Directory (or file) that the model was loaded from."""
        ...

    @property
    def max_model_len(self) -> int:
        """Longest prompt plus continuation, in tokens."""
        ...

    @property
    def longest_token(self) -> int:
        """Letters of the longest token: a text of more than `max_model_len` times as many does
        not fit, which is known without encoding it."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Token ids of a text."""
        ...

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool,
        continue_final_message: bool,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> list[int]:
        """Token ids of a conversation in the model's chat format, with functions that may be
        called. Raises ValueError when the format cannot express it."""
        ...

    def check_grammar(self, grammar: str) -> None:
        """Raise ValueError when replies cannot be held to it, here or at all."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of tokens, special tokens included."""
        ...

    def check_tokens(self, tokens: Sequence[int]) -> None:
        """Raise ValueError when an id is outside the vocabulary."""
        ...

    def reply_text(self, tokens: Sequence[int]) -> str:
        """Text of a reply's tokens, special tokens left out; stop texts are in it still."""
        ...

    async def generate(
        self, prompt: Sequence[int], sampling: Sampling, listener: TokenListener | None = None
    ) -> list[Choice]:
        """`sampling.n` continuations of a prompt that fits the context. `listener` receives tokens
        before the end; it may receive none of a choice (which is known at its end only), and never
        one that the choice does not have."""
        ...

    async def score(self, tokens: Sequence[int], alternatives: int) -> list[TokenScore]:
        """Log-probabilities of given tokens, each given those before it."""
        ...

    async def reload(self, path: str) -> None:
        """Serve the weights in another directory from now on. Raises ValueError when it holds
        no such model; the old weights then stay."""
        ...


class ReplyFailedError(Exception):
    """A reply could not be held to its grammar; the words say why."""


class ServerStoppedError(Exception):
    """The server is shutting down; the request was not served."""
