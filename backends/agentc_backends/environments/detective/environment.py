"""Detective as an environment: one task, the game from its start, and its expert.

Rewards are gains of score. With `actions: legal`, an action outside of the game's legal ones is
refused with an observation; with `free`, any command goes to the game's parser but those that step
out of the game. Refused actions count as steps, and are counted."""

from __future__ import annotations

import base64
import hashlib
import random
import threading
import zlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar

from agentc_backends.environments.detective.commands import forbidden, speakable, tidy
from agentc_backends.environments.detective.game import DetectiveGame, Position
from agentc_backends.environments.detective.settings import DetectiveSettings, Story
from agentc_backends.environments.server.environment import EnvironmentFailure, EpisodeError
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.world import ExpertAction

SPLIT = "all"
_OVER = "The episode is over."
_MOST_BYTES = 1 << 19


class DetectiveShared:
    """What the episodes of a server share."""

    def __init__(self, game: DetectiveGame, story: Story, settings: DetectiveSettings) -> None:
        self.game, self.story, self.settings = game, story, settings
        self.walkthrough = Walkthrough(game)
        self._tried = {"refused": 0, "exploits": 0}
        self._lock = threading.Lock()

    def count(self, *, exploit: bool) -> None:
        with self._lock:
            self._tried["refused"] += 1
            self._tried["exploits"] += exploit

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._tried)


class DetectiveEnvironment:
    """One episode at a time; it holds a state, and no process."""

    name: ClassVar[str] = "detective"
    title: ClassVar[str] = "Detective"
    version: ClassVar[str] = "1"
    reward_kind: ClassVar[str] = "sum"
    splits: ClassVar[tuple[str, ...]] = (SPLIT,)
    blocking: ClassVar[bool] = True
    resets_on_create: ClassVar[bool] = False
    reported: ClassVar[tuple[str, ...]] = ("score", "refused", "exploits", "step_limit")

    def __init__(self, world: DetectiveShared) -> None:
        self._world = world
        self._position: Position | None = None
        self._steps = self._refused = self._exploits = 0

    @property
    def reward_range(self) -> tuple[float, float]:
        points = float(self._world.story.points)
        # Games that are not known may take points away.
        return (0.0 if self._world.story.known else -points, points)

    @property
    def success_threshold(self) -> float:
        return float(self._world.story.points)

    @property
    def default_max_steps(self) -> int:
        return self._world.settings.max_steps

    @property
    def capabilities(self) -> frozenset[str]:
        both = frozenset({"fork", "snapshot"})
        return both | {"expert"} if self._world.story.known else both

    def tasks(self, split: str) -> Sequence[str]:
        if split != SPLIT:
            raise KeyError(f"{self.title} has no split {split!r}; it has {SPLIT}")
        return (self._world.story.name,)

    def has_task(self, task_id: str) -> bool:
        return task_id == self._world.story.name

    def numbered_tasks(self) -> Sequence[str]:
        return self.tasks(SPLIT)

    def identity(self) -> dict[str, Any]:
        story = self._world.story
        return {
            "name": self.name,
            "version": self.version,
            "interpreter": version("jericho"),
            "game": {"name": story.name, "sha256": story.sha256},
            "options": rules_of(self._world.settings),
        }

    def counts(self) -> dict[str, int]:
        """Over all episodes of the server."""
        return self._world.counts()

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start the game; chance has no part in it, and the seed none either."""
        del seed
        if not self.has_task(task_id):
            raise EpisodeError(f"{self.title} has no task {task_id!r}")
        self._position = self._world.game.opening
        self._steps = self._refused = self._exploits = 0
        info = {**self._info(self._position), "step_limit": self._world.settings.max_steps}
        return self._observation(self._position, self._position.text), info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        position = self._open()
        if self._done:
            return _OVER, 0.0, True, False, self._info(position)
        command = tidy(action)
        refusal = self._refusal(position, command)
        if refusal is None:
            after = self._world.game.act(position, command)
            text = after.text
        else:
            after, text = position, refusal
        observation = self._observation(after, text)
        self._steps += 1
        self._position = after
        cut = not after.over and self._steps >= self._world.settings.max_steps
        reward = float(after.score - position.score)
        return observation, reward, after.over, cut, self._info(after)

    def expert_steps(self, task_id: str, *, seed: int = 0) -> tuple[ExpertAction, ...]:
        if not self.has_task(task_id):
            raise EpisodeError(f"{self.title} has no task {task_id!r}")
        settings, chance = self._world.settings, random.Random(f"{seed} {task_id}")
        if settings.expert_skill >= 1 or chance.random() < settings.expert_skill:
            return self._world.walkthrough.steps()
        return wandering(self._world.game, chance, settings.max_steps)

    def snapshot(self) -> dict[str, Any]:
        """The machine's state, packed, and what was counted."""
        position = self._open()
        state = base64.b64decode(position.state)
        return {
            "environment": self.name,
            "version": 1,
            "game": self._world.story.sha256,
            "state": base64.b64encode(zlib.compress(state, 6)).decode(),
            "state_sha256": hashlib.sha256(state).hexdigest(),
            "text": position.text,
            "points": position.score,
            "over": position.over,
            "counts": [self._steps, self._refused, self._exploits],
            "done": self._done,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""
        match snapshot:
            case {
                "environment": self.name,
                "version": 1,
                "game": self._world.story.sha256,
                "state": str(packed),
                "state_sha256": str(digest),
                "text": str(text),
                "points": int(score),
                "over": bool(over),
                "counts": [int(steps), int(refused), int(exploits)],
                "done": bool(done),
            } if 0 <= exploits <= refused <= steps <= self._world.settings.max_steps:
                state = _unpacked(packed)
            case _:
                raise ValueError(f"not a snapshot of a {self.title} episode with these options")
        if hashlib.sha256(state).hexdigest() != digest:
            raise ValueError("the snapshot's state and its digest do not agree")
        if done != (over or steps >= self._world.settings.max_steps):
            raise ValueError("the snapshot's steps and its end do not agree")
        self._position = self._world.game.resumed(
            base64.b64encode(state).decode(), text, score, over=over
        )
        self._steps, self._refused, self._exploits = steps, refused, exploits

    def close(self) -> None:
        """An episode holds memory only."""

    @property
    def _done(self) -> bool:
        return self._open().over or self._steps >= self._world.settings.max_steps

    def _refusal(self, position: Position, command: str) -> str | None:
        """What an action that may not be taken is answered."""
        game = self._world.game
        exploit = forbidden(command, game.meta, game.letters)
        if self._world.settings.actions == "legal":
            allowed = command in game.legal(position)
            answer = "That is not among the actions that can be taken now.\n"
        else:
            # To nothing at all the game itself has an answer.
            allowed = (not command or speakable(command)) and not exploit
            answer = "That is not something a player can do.\n"
        if allowed:
            return None
        self._refused += 1
        self._exploits += exploit
        self._world.count(exploit=exploit)
        return answer

    def _observation(self, position: Position, text: str) -> str:
        """As ArCHer puts it together: what is seen and carried, what was told, legal actions. At
        the end, when looking tells nothing, what was told alone."""
        if position.over:
            return text
        legal = list(self._world.game.legal(position)) if self._world.game.supported else []
        return f"{position.look}{position.inventory}{text}{legal}"

    def _info(self, position: Position) -> dict[str, Any]:
        return {
            "score": position.score,
            "refused": self._refused,
            "exploits": self._exploits,
        }

    def _open(self) -> Position:
        if self._position is None:
            raise EpisodeError("reset the session before using it")
        return self._position


def _unpacked(packed: str) -> bytes:
    """Raises ValueError."""
    try:
        unpacker = zlib.decompressobj()
        state = unpacker.decompress(base64.b64decode(packed, validate=True), _MOST_BYTES)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"the snapshot's state cannot be unpacked: {error}") from error
    if not unpacker.eof:
        raise ValueError("the snapshot's state is cut off")
    return state


# The expert: jericho's walkthrough in legal actions, read when it is first needed; or, where its
# skill says so, legal actions at random. A command of the walkthrough that changes nothing is left
# out; one that is not legal as it is worded becomes the legal action that does the same.


def wandering(game: DetectiveGame, chance: random.Random, most: int) -> tuple[ExpertAction, ...]:
    """Legal actions drawn evenly until the game is over, `most` of them at most. Raises
    EnvironmentFailure."""
    position, plan = game.opening, list[ExpertAction]()
    while not position.over and len(plan) < most:
        action = chance.choice(game.legal(position))
        plan.append(ExpertAction(action))
        position = game.act(position, action)
    return tuple(plan)


class Walkthrough:
    """The plan, made once; any thread may ask."""

    def __init__(self, game: DetectiveGame) -> None:
        self._game = game
        self._plan: tuple[ExpertAction, ...] = ()
        self._lock = threading.Lock()

    def steps(self) -> tuple[ExpertAction, ...]:
        """Raises EnvironmentFailure."""
        with self._lock:
            self._plan = self._plan or self._compute()
            return self._plan

    def _compute(self) -> tuple[ExpertAction, ...]:
        position, plan = self._game.opening, []
        for command in self._game.walkthrough:
            after = self._game.act(position, tidy(command))
            if after.key == position.key and after.score == position.score and not after.over:
                continue
            action = self._worded(position, tidy(command), after)
            plan.append(ExpertAction(action))
            position = self._game.act(position, action)
        return tuple(plan)

    def _worded(self, position: Position, command: str, after: Position) -> str:
        legal = self._game.legal(position)
        if command in legal:
            return command
        for action in legal:
            same = self._game.act(position, action)
            if (same.key, same.score, same.over) == (after.key, after.score, after.over):
                return action
        raise EnvironmentFailure(f"no legal action does what the walkthrough's {command!r} does")
