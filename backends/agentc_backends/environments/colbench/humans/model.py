"""A model as the human: told the function that is meant, and asked for the next reply.

Neighbours: `prompt.py` (its words), `../../server/asked_model.py`, which reaches the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, TypeAlias

from agentc_backends.environments.colbench.humans.prompt import NO_CODE, PROMPT, SYSTEM, filled
from agentc_backends.environments.colbench.tasks import CodeTask
from agentc_backends.environments.server.asked_model import AskedModel, words_of

_AGENT, _HUMAN = "Programmer", "You"
DialogueForm: TypeAlias = Literal["lines", "published"]


class ModelHuman:
    """Asks a chat model for each reply, as the same person whoever runs beside it: the seed of a
    request, where one is sent, follows from the task and from what was said."""

    def __init__(
        self,
        model: AskedModel,
        *,
        temperature: float,
        max_tokens: int,
        prompt: str = PROMPT,
        system: str = SYSTEM,
        dialogue: DialogueForm = "lines",
        seeded: bool = True,
    ) -> None:
        self._model, self._prompt, self._system = model, prompt, system
        self._temperature, self._max_tokens = temperature, max_tokens
        self._dialogue, self._seeded = dialogue, seeded

    def reply(
        self, task: CodeTask, said: Sequence[tuple[str, str]], question: str, *, again: bool = False
    ) -> str:
        form = _published if self._dialogue == "published" else _lines
        text = filled(self._prompt, task, form(task, said, question))
        if again:
            text += f"\n{NO_CODE}\n"
        messages = [{"role": "system", "content": self._system}, {"role": "user", "content": text}]
        told = self._model.chat(
            messages,
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            seed=_seed(task, text) if self._seeded else None,
            affinity=task.id,
        )
        words = words_of(told)
        return told.text if self._dialogue == "published" else words


def _lines(task: CodeTask, said: Sequence[tuple[str, str]], question: str) -> str:
    del task
    rounds = [f"{_AGENT}: {asked}\n{_HUMAN}: {told}" for asked, told in said]
    return "\n".join([*rounds, f"{_AGENT}: {question}"])


def _published(task: CodeTask, said: Sequence[tuple[str, str]], question: str) -> str:
    """Every message as a block behind its role, the description first; four line ends after each,
    and at the end the role that comes next by its other name."""
    turns = [("user", task.description)]
    for asked, told in said:
        turns += [("assistant", asked), ("user", told)]
    turns.append(("assistant", question))
    return "".join(f"{role}:{content}\n\n\n\n" for role, content in turns) + "agent:"


def _seed(task: CodeTask, text: str) -> int:
    """Of 31 bits, as servers take them."""
    whole = f"{task.id}\0{text}".encode("utf-8", "surrogatepass")
    return int(hashlib.sha256(whole).hexdigest()[:8], 16) >> 1
