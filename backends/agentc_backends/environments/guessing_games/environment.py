"""Twenty Questions and Guess My City as environments: tasks, expert and snapshots around a game.

A task is the secret; an action is a question. Sessions of a server share the world.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from agentc_backends.environments.guessing_games.expert import GuessingPlanner
from agentc_backends.environments.guessing_games.games import GuessingGame, secrets_in_play
from agentc_backends.environments.guessing_games.oracles import Oracle
from agentc_backends.environments.guessing_games.secrets import Secret, lines_of, split_secrets
from agentc_backends.environments.guessing_games.settings import GuessingSettings
from agentc_backends.environments.server.environment import HiddenText
from agentc_backends.environments.server.world import ExpertAction, TaskLists, TextWorld

_FINAL = "A wrong guess ends the game."
_DATA = {
    "twenty_questions": ("objects.txt", "object_facts.txt"),
    "guess_my_city": ("cities.txt", "countries.txt"),
}


class GuessingShared:
    """A game with its settings, its secrets and an oracle; it never changes."""

    def __init__(
        self,
        game: GuessingGame,
        settings: GuessingSettings,
        oracle: Oracle,
        oracle_identity: Mapping[str, Any],
    ) -> None:
        """`oracle_identity` says which oracle it is, as JSON values, with its `kind`."""
        self.game, self.settings, self.oracle = game, settings, oracle
        self.oracle_identity = dict(oracle_identity)
        self.table = game.load()
        secrets = secrets_in_play(game, settings)
        self.secrets: dict[str, Secret] = {secret.id: secret for secret in secrets}
        self.lists = TaskLists(split_secrets(secrets, settings.splits))
        self.expert = GuessingPlanner(
            self.table,
            tuple(self.secrets),
            settings.expert_skill,
            settings.questions,
            settings.expert_guesses,
            settings.guess == "final",
        )


class GuessingEnvironment(TextWorld):
    """One game at a time."""

    reported = ("step_limit",)
    over = "The game is over."

    def __init__(self, world: GuessingShared) -> None:
        super().__init__(world.lists, world.settings)
        self._world = world
        self.name = world.game.name
        self.reward_range = world.settings.reward_range
        self.reward_kind = "sum" if world.settings.reward == "per_question" else "terminal"
        self.success_threshold = world.settings.success_at
        self.default_max_steps = world.settings.questions
        self.blocking = world.oracle_identity["kind"] in ("server", "model")
        self._turns: list[tuple[str, str]] = []
        self._won = self._lost = False

    @property
    def title(self) -> str:
        return self._world.game.title

    def numbered_tasks(self) -> Sequence[str]:
        """In the order of ArCHer's list."""
        return tuple(self._world.secrets)

    def begin(self, task_id: str, seed: int) -> str:
        """Nothing in a game depends on the seed."""
        self._turns = []
        self._won = self._lost = False
        if self._world.settings.observation == "transcript":
            return "Questions:\n"
        opening = self._world.game.opening.format(questions=self._world.settings.questions)
        return f"{opening} {_FINAL}" if self._world.settings.guess == "final" else opening

    def act(self, action: str) -> tuple[str, float, bool]:
        """Ask one question."""
        world, secret = self._world, self._world.secrets[self.episode_task()]
        # A line break would let a player write answers of its own into the transcript, as it may in
        # the released environments.
        upstream = world.settings.judge == "upstream_v1"
        question = action if upstream else " ".join(action.split())
        verdict = world.game.judge(
            world.settings.judge,
            world.table.guessable,
            secret,
            question,
            lambda: world.oracle.answer(secret.id, question),
        )
        answer = verdict.answer if upstream else " ".join(verdict.answer.split())
        self._turns.append((question, answer))
        self._won = verdict.won
        self._lost = verdict.guess and not verdict.won and world.settings.guess == "final"
        over = self._won or self._lost or len(self._turns) >= world.settings.questions
        return self._observation(), self._reward(), over

    def expert_steps(self, task_id: str, *, seed: int = 0) -> Sequence[ExpertAction]:
        """A game that finds the secret by what the table of facts answers."""
        return self._world.expert.plan(self._world.secrets[task_id].id, seed)

    def hidden_text(self, task_id: str) -> HiddenText:
        """The secret, in a sentence that nobody says in a game."""
        return HiddenText(self._world.game.hidden.format(secret=self._world.secrets[task_id].id))

    def save(self) -> dict[str, Any]:
        return {"turns": [list(turn) for turn in self._turns], "won": self._won}

    def load(self, task_id: str, state: Mapping[str, Any]) -> None:
        match state:
            case {"turns": list(rows), "won": bool(won), "done": bool(done)}:
                turns = [_turn(row) for row in rows]
            case _:
                raise self.malformed()
        settings = self._world.settings
        full = len(turns) == settings.questions
        lost = done and not (won or full)
        if (
            len(turns) > settings.questions
            or ((won or full) and not done)
            or (lost and settings.guess != "final")
            or (won or lost) > len(turns)
        ):
            raise ValueError("the snapshot's questions and its end do not agree")
        self._turns, self._won, self._lost = turns, won, lost

    def malformed(self) -> ValueError:
        return ValueError(f"not a snapshot of {self.title} with these options")

    def identity(self) -> dict[str, Any]:
        """Everything that decides tasks, answers and rewards, as JSON values."""
        own = super().identity()
        data = "\n".join(line for file in _DATA[self.name] for line in lines_of(file))
        tasks = "\n".join(f"{split} {task}" for split in self.splits for task in self.tasks(split))
        return {
            **own,
            "options": {**own["options"], "oracle": self._world.oracle_identity},
            "facts_sha256": hashlib.sha256(data.encode()).hexdigest(),
            "tasks_sha256": hashlib.sha256(tasks.encode()).hexdigest(),
        }

    def _reward(self) -> float:
        """Of the last question: ArCHer's -1, or 0 when it wins; or what is left at the end. A wrong
        guess that ends the game costs all questions that are left with it."""
        left = float(self._world.settings.questions - len(self._turns) + 1)
        if self._world.settings.reward == "per_question":
            return 0.0 if self._won else -left if self._lost else -1.0
        return left if self._won else 0.0

    def _observation(self) -> str:
        if self._world.settings.observation == "answer":
            return self._turns[-1][1]
        return "Questions:\n" + "".join(f"{asked} {told}\n" for asked, told in self._turns)


def _turn(row: object) -> tuple[str, str]:
    match row:
        case [str(question), str(answer)]:
            return question, answer
    raise ValueError("a turn is a question and an answer")
