"""Texts to and from an OpenEnv server: an agent's words fill its typed action, by the schema that
it shows; replies become an observation, a reward and an end.

A text that fits no field is answered (`NotAnActionError`) and never sent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentc_backends.environments.external.environment import NotAnActionError

_PLAIN = ("string", "integer", "number", "boolean")
_WORDS = {"true": True, "false": False}


class TextAction:
    """One field gets the text, as its type says; `constants` are the others."""

    told = ""

    def __init__(self, schema: Mapping[str, Any], field: str | None, constants: Mapping[str, Any]):
        """`schema` is the action's of GET /schema. Raises ValueError where no field, or more than
        one, could be meant."""
        fields = _fields(schema, constants)
        required = [name for name in schema.get("required", []) if name in fields]
        if field is None:
            open_to = required or list(fields)
            if len(open_to) != 1:
                raise ValueError(
                    f"an action has the fields {_listed(schema)}: name the one that an agent's "
                    "words go to (`action_field`) and give the others a value (`action`), or let "
                    "it write them all (`action_form: json`)"
                )
            [field] = open_to
        elif field not in fields:
            raise ValueError(f"`action_field` is `{field}`, an action has {_listed(schema)}")
        missing = [name for name in required if name != field]
        if missing:
            raise ValueError(f"an action needs `{missing[0]}` too: give it a value under `action`")
        self._field, self._constants = field, dict(constants)
        self._kind = _kind(fields[field])
        if self._kind not in _PLAIN:
            raise ValueError(
                f"`{field}` of an action is no text or number ({self._kind}): take "
                "`action_form: json`"
            )

    def read(self, text: str) -> dict[str, Any]:
        """Raises NotAnActionError."""
        return {**self._constants, self._field: self._value(text)}

    def _value(self, text: str) -> Any:
        word = text.strip()
        try:
            match self._kind:
                case "string":
                    return text
                case "integer":
                    return int(word)
                case "boolean":
                    return _WORDS[word.lower()]
            number = float(word)
            if math.isfinite(number):
                return number
        except (ValueError, KeyError):
            pass
        raise NotAnActionError(f"`{word[:80]}` is no action: `{self._field}` is a {self._kind}.")


class JsonAction:
    """The text is a JSON object of the action's fields; `constants` are filled in."""

    def __init__(self, schema: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
        self._fields = _fields(schema, constants)
        self._constants = dict(constants)
        self._required = [name for name in schema.get("required", []) if name in self._fields]
        parts = (
            f"{name} ({_kind(about)}{', required' if name in self._required else ''})"
            for name, about in self._fields.items()
        )
        self.told = f"An action is a JSON object with: {', '.join(parts)}."

    def read(self, text: str) -> dict[str, Any]:
        """Raises NotAnActionError."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise NotAnActionError(f"That is no JSON object. {self.told}")
        unknown = [name for name in value if name not in self._fields]
        missing = [name for name in self._required if name not in value]
        if unknown or missing:
            what = f"has no field `{unknown[0]}`" if unknown else f"needs the field `{missing[0]}`"
            raise NotAnActionError(f"An action {what}. {self.told}")
        return {**self._constants, **value}


def _fields(schema: Mapping[str, Any], constants: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that an agent may fill. Raises ValueError for constants that the action lacks."""
    known = schema.get("properties", {})
    for name in constants:
        if name not in known:
            raise ValueError(f"`action` names `{name}`, an action has {_listed(schema)}")
    return {n: about for n, about in known.items() if n != "metadata" and n not in constants}


def _listed(schema: Mapping[str, Any]) -> str:
    names = [f"`{name}`" for name in schema.get("properties", {}) if name != "metadata"]
    return ", ".join(names) or "no fields"


def _kind(about: Any) -> str:
    """The type of a field; of an optional one that of its value."""
    if not isinstance(about, Mapping):
        return "any"
    kinds = (
        [about.get("type")]
        if "type" in about
        else [each.get("type") for each in about.get("anyOf", []) if isinstance(each, Mapping)]
    )
    named = [str(kind) for kind in kinds if kind not in (None, "null")]
    return named[0] if len(named) == 1 else "any"


# An observation of one field is that field, several are a line each; a value that is no text is
# JSON.

UNTOLD = ("reward", "done", "metadata")
"""Fields of an observation that are no text for agents unless a spec names them."""


class ReplyError(Exception):
    """The server answered what the protocol, or the spec, does not allow."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What came of a reset or a step; the reward is in the server's own units."""

    text: str
    reward: float
    done: bool


def read_observed(data: Mapping[str, Any], fields: Sequence[str]) -> Observed:
    """The `data` of an observation message; `fields` are those to be told, else all that are given
    but UNTOLD. Raises ReplyError."""
    observation, reward, done = data.get("observation"), data.get("reward"), data.get("done")
    if not isinstance(observation, Mapping):
        raise ReplyError(f"the reply has no observation: {json.dumps(data)[:200]}")
    if reward is None:
        reward = 0.0
    if not isinstance(reward, (int, float)) or not math.isfinite(reward):
        raise ReplyError(f"the reward of a step is {reward!r}")
    if not isinstance(done, bool):
        raise ReplyError(f"`done` is {done!r}")
    return Observed(_observation_text(observation, fields), float(reward), done)


def _observation_text(observation: Mapping[str, Any], fields: Sequence[str]) -> str:
    absent = [name for name in fields if name not in observation]
    if absent:
        has = ", ".join(f"`{name}`" for name in observation) or "none"
        raise ReplyError(f"an observation has no field `{absent[0]}`; its fields: {has}")
    names = fields or [
        name for name, value in observation.items() if name not in UNTOLD and value is not None
    ]
    if len(names) == 1:
        return _plain(observation[names[0]])
    return "\n".join(f"{name}: {_plain(observation[name])}" for name in names)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
