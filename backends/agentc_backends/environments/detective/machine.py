"""A Z-machine with one game: commands, looks and legal actions as functions of a state.

Imports jericho, so only `interpreter.py` imports it, in a process of its own. A state is the whole
machine as bytes; any machine with the same game can go on from it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jericho import FrotzEnv
from jericho.defines import ILLEGAL_ACTIONS
from jericho.util import clean, get_subtree, recognized, verb_usage_count

from agentc_backends.environments.detective.commands import forbidden

_HEADER = struct.Struct("<5i3q")
_WAIT = "wait"
# Jericho scores a name by the kind of its word, less a little for each letter.
_NOUN, _WHOLE, _ADJECTIVE, _LETTER = 1.0, 0.5, 0.0, 0.01


class StateError(ValueError):
    """These bytes are no state of this game."""


@dataclass(frozen=True, slots=True)
class GameReply:
    """What a command did. `halted` says that the machine itself gave up."""

    state: bytes
    text: str
    score: int
    over: bool
    halted: bool


@dataclass(frozen=True, slots=True)
class PlayerView:
    """What a player sees in a state, and a name of the state that forgets the time."""

    look: str
    inventory: str
    key: str


class GameMachine:
    """One game, loaded once."""

    def __init__(self, file: str, scratch: Sequence[tuple[int, int]]) -> None:
        # A seed of 0 is jericho's word for "as the walkthrough needs it".
        self._env = FrotzEnv(file, seed=0)
        if self._env._seed < 0:
            self._env = FrotzEnv(file, seed=1)
        text, info = self._env.reset()
        self.opening = GameReply(self._state(), text, int(info["score"]), over=False, halted=False)
        self._at_prompt = self._env.get_state()
        self._ram, self._stack = (len(part) for part in self._at_prompt[:2])
        self._world = np.ones(self._ram, dtype=bool)
        for start, end in scratch:
            self._world[start:end] = False
        words = self._env.get_dictionary()
        self._words = frozenset(word.word for word in words)
        self.letters = max(len(word) for word in self._words)
        marked = frozenset(word.word for word in words if word.is_meta)
        # Jericho's own list serves games that mark none.
        self.meta = marked or self._words.intersection(ILLEGAL_ACTIONS)
        self.supported = bool(self._env.bindings and self._env.act_gen)

    def facts(self) -> dict[str, Any]:
        env = self._env
        return {
            "points": int(env.get_max_score()) - self.opening.score,
            "supported": self.supported,
            "walkthrough": env.get_walkthrough() if self.supported else [],
            "meta": sorted(self.meta),
            "letters": self.letters,
        }

    def act(self, state: bytes, command: str) -> GameReply:
        self._restore(state)
        text, _, over, info = self._env.step(command)
        halted = bool(self._env._emulator_halted())
        reply = GameReply(self._state(), text, int(info["score"]), bool(over), halted)
        if halted:
            self._env.reset()
        return reply

    def see(self, state: bytes) -> PlayerView:
        self._restore(state)
        inventory = self._env.step("inventory")[0]
        self._restore(state)
        look = self._env.step("look")[0]
        return PlayerView(look, inventory, hashlib.sha256(self._canonical(state)).hexdigest())

    def legal(self, state: bytes) -> list[str]:
        """Actions that change the world, one for each change, sorted; to wait where there are none
        (somebody blocks every way, say). They are those of the state's canonical form, so states
        with one key have the same."""
        state = self._canonical(state)
        self._restore(state)
        candidates = [
            action
            for action in self._env.act_gen.generate_actions([*self._names(state), "all"])
            if not forbidden(action, self.meta, self.letters)
        ]
        self._restore(state)
        alike = self._env._filter_candidate_actions(candidates, use_ctypes=True, use_parallel=False)
        return sorted({max(actions, key=verb_usage_count) for actions in alike.values()}) or [_WAIT]

    def _names(self, state: bytes) -> list[str]:
        """A name for each thing here or carried: the best one among those that mean it."""
        place = self._env.get_player_location()
        if place is None:
            return []
        player = self._env.get_player_object()
        things = get_subtree(place.child, self._env.get_world_objects())
        worth: dict[str, float] = {}
        for thing in things:
            if thing == player:
                continue
            *before, last = thing.name.split() or [""]
            told = [(thing.name, _WHOLE), *((word, _ADJECTIVE) for word in before)]
            if before:
                told.append((last, _NOUN))
            for name, value in told:
                known = " " in name or name[: self.letters] in self._words
                if name and known:
                    worth[name] = max(worth.get(name, 0.0), value - _LETTER * len(name))
        meaning: dict[str, list[str]] = {}
        for name in sorted(worth):
            self._restore(state)
            text = clean(self._env.step(f"examine {name}")[0])
            if recognized(text):
                meaning.setdefault(text, []).append(name)
        return [max(names, key=lambda name: worth[name]) for names in meaning.values()]

    def _canonical(self, state: bytes) -> bytes:
        """The state as if the game had just begun in this world: the same for all states that
        differ in what is no part of the world. One that waits for something else than a command
        (an answer to the game's question) stays as it is."""
        self._restore(state)
        ram, *machine = self._env.get_state()
        if self._world.all() or machine[1:5] != list(self._at_prompt[2:6]):
            return self._state()
        self._env.set_state((np.where(self._world, ram, self._at_prompt[0]), *self._at_prompt[1:]))
        return self._state()

    def _state(self) -> bytes:
        ram, stack, pc, sp, fp, frames, opcode, rng, text = self._env.get_state()
        header = _HEADER.pack(pc, sp, fp, frames, opcode, *(int(part) for part in rng))
        return bytes(header + ram.tobytes() + stack.tobytes() + text)

    def _restore(self, state: bytes) -> None:
        ends = (_HEADER.size, _HEADER.size + self._ram, _HEADER.size + self._ram + self._stack)
        if len(state) < ends[2]:
            raise StateError("a state of another game, or a part of one")
        *machine, a, interval, counter = _HEADER.unpack_from(state)
        ram = np.frombuffer(state[ends[0] : ends[1]], dtype=np.uint8).copy()
        stack = np.frombuffer(state[ends[1] : ends[2]], dtype=np.uint8).copy()
        self._env.set_state((ram, stack, *machine, (a, interval, counter), state[ends[2] :]))
