"""The Z-machine with one game, in a process of its own: `python -m` of this module and a FILE.

Reads a request a line (JSON) from stdin and answers it on stdout. A request that takes too long
ends the process by an alarm, also inside of the interpreter's C code and when the server is gone.
The limit is of CPU time, which a busy machine does not use up; waiting may take ten times it.
Imports jericho, as no other module does; `game.py` starts these processes."""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jericho import FrotzEnv
from jericho.defines import ILLEGAL_ACTIONS
from jericho.util import clean, get_subtree, recognized, verb_usage_count

from agentc.program.import_report import report
from agentc_backends.environments.detective.commands import forbidden

_MOST_BYTES = 1 << 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="detective.interpreter", description=__doc__)
    parser.add_argument("file", help="the game")
    parser.add_argument("--folder", default=".", help="where it runs")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for a request")
    parser.add_argument("--scratch", default="", help="parts of memory that are not the world's")
    options = parser.parse_args()
    # The interpreter prints; what it prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    parts = [part.split("-") for part in options.scratch.split(",") if part]
    scratch = [(int(start), int(end)) for start, end in parts]
    _alarm(max(options.limit, 30.0))
    machine = GameMachine(options.file, scratch)
    facts = {**machine.facts(), "opening": _as_json(machine.opening)}
    _alarm(0.0)
    report()
    # A game can be told to write files (`save`, `script`).
    os.chdir(options.folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_BYTES, _MOST_BYTES))
    _answer(answers, facts)
    for line in sys.stdin:
        _alarm(options.limit)
        try:
            found = _serve(machine, json.loads(line))
        except StateError as error:
            found = {"bad_state": str(error)}
        _alarm(0.0)
        _answer(answers, found)
    return 0


def _alarm(limit_s: float) -> None:
    """End this process after so much processor time; 0: no more."""
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    signal.setitimer(signal.ITIMER_REAL, limit_s * 10)


def _serve(machine: GameMachine, request: dict[str, Any]) -> dict[str, Any]:
    state = base64.b64decode(request["state"])
    match request["do"]:
        case "act":
            return _as_json(machine.act(state, request["command"]))
        case "see":
            seen = machine.see(state)
            return {"look": seen.look, "inventory": seen.inventory, "key": seen.key}
        case "legal":
            return {"legal": machine.legal(state)}
    raise ValueError(request["do"])


def _as_json(reply: GameReply) -> dict[str, Any]:
    return {
        "state": base64.b64encode(reply.state).decode(),
        "text": reply.text,
        "score": reply.score,
        "over": reply.over,
        "halted": reply.halted,
    }


def _answer(answers: Any, found: dict[str, Any]) -> None:
    answers.write(json.dumps(found) + "\n")
    answers.flush()


# Commands, observations and legal actions are functions of a state: the whole machine as bytes,
# from which any machine with the same game can continue.

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


if __name__ == "__main__":
    sys.exit(main())
