"""A model as the human: told the function that is meant, and asked for the next reply.

Neighbours: `prompt.py` (its words), `../../server/asked_model.py`, which reaches the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from agentc_backends.environments.colbench.humans.prompt import NO_CODE, PROMPT, filled
from agentc_backends.environments.colbench.tasks import CodeTask
from agentc_backends.environments.server.asked_model import AskedModel, words_of

_SYSTEM = "You are a person who talks with a programmer."
_AGENT, _HUMAN = "Programmer", "You"


class ModelHuman:
    """Asks a chat model for each reply, as the same person whoever runs beside it: the seed of a
    request follows from the task and from what was said."""

    def __init__(
        self, model: AskedModel, *, temperature: float, max_tokens: int, prompt: str = PROMPT
    ) -> None:
        self._model, self._prompt = model, prompt
        self._temperature, self._max_tokens = temperature, max_tokens

    def reply(
        self, task: CodeTask, said: Sequence[tuple[str, str]], question: str, *, again: bool = False
    ) -> str:
        text = filled(self._prompt, task, _dialogue(said, question))
        if again:
            text += f"\n{NO_CODE}\n"
        messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": text}]
        told = self._model.chat(
            messages,
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            seed=_seed(task, text),
            affinity=task.id,
        )
        return words_of(told)


def _dialogue(said: Sequence[tuple[str, str]], question: str) -> str:
    rounds = [f"{_AGENT}: {asked}\n{_HUMAN}: {told}" for asked, told in said]
    return "\n".join([*rounds, f"{_AGENT}: {question}"])


def _seed(task: CodeTask, text: str) -> int:
    """Of 31 bits, as servers take them."""
    whole = f"{task.id}\0{text}".encode("utf-8", "surrogatepass")
    return int(hashlib.sha256(whole).hexdigest()[:8], 16) >> 1
