"""TextWorld: what it adds to a world's own rules."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S

from agentc.program.settings import setting
from agentc_backends.clients import BadRequestError, EnvironmentServerError
from agentc_backends.environments.server.inside import InsideEnvironment
from agentc_backends.environments.server.world import TextWorld


@dataclass(frozen=True, kw_only=True)
class PlainSettings:
    times: int = setting("How often.")


class Plain(TextWorld):
    """Say a word so many times."""

    name = "say_it"

    def __init__(self, settings: PlainSettings | None = None) -> None:
        settings = settings or PlainSettings(times=2)
        super().__init__({"train": ("ant", "bee"), "test": ("cat",)}, settings)
        self.times = settings.times
        self.said = 0

    def begin(self, task_id: str, seed: int) -> str:
        self.word, self.said = task_id, 0
        return f"Say {task_id}."

    def act(self, action: str) -> tuple[str, float, bool]:
        self.said += action == self.word
        done = self.said >= self.times
        return f"{self.said}", float(done), done


class Saved(Plain):
    seeded = True

    def save(self) -> dict[str, Any]:
        return {"said": self.said}

    def load(self, task_id: str, state: Mapping[str, Any]) -> None:
        if not isinstance(state.get("said"), int):
            raise ValueError("not a count")
        self.word, self.said = task_id, state["said"]


def test_what_a_world_can_is_seen_from_its_members() -> None:
    assert Plain().capabilities == set()
    assert Saved().capabilities == {"fork", "snapshot", "seed"}
    world = Plain(PlainSettings(times=3))
    assert (world.title, world.splits) == ("Say it", ("train", "test"))
    assert world.identity() == {"name": "say_it", "version": "1", "options": {"times": 3}}
    assert [world.has_task(task) for task in ("ant", "cat", "dog")] == [True, True, False]


def test_an_episode_starts_ends_and_stays_ended() -> None:
    async def play() -> None:
        calls = InsideEnvironment(Plain)
        number = await calls.create()
        with pytest.raises(EnvironmentServerError, match="reset the environment before"):
            await calls.step(number, "ant")
        await calls.reset(number, "ant")
        walked = [await calls.step(number, word) for word in ("dog", "ant", "ant", "ant")]
        assert [(one.reward, one.done) for one in walked] == [
            (0.0, False), (0.0, False), (1.0, True), (0.0, True),
        ]  # fmt: skip
        with pytest.raises(BadRequestError, match="no capability 'fork'"):
            await calls.fork(number)

    asyncio.run(play())


def test_a_copy_goes_on_by_itself() -> None:
    async def play() -> None:
        calls = InsideEnvironment(Saved)
        number = await calls.create()
        await calls.reset(number, "ant")
        await calls.step(number, "ant")
        other = await calls.fork(number)
        assert (await calls.step(other, "ant")).done
        assert (await calls.step(number, "nothing")).observation == "1"
        for state in ({"said": "one"}, {"said": None}, {"task_id": "dog"}, {"seed": "1"}):
            broken = {**await calls.snapshot(number), **state}
            with pytest.raises(BadRequestError):
                await calls.restore(broken, number)
        # And nothing was changed by those.
        assert (await calls.step(number, "ant")).done

    asyncio.run(play())


def test_its_program_serves_and_needs_its_options(tmp_path: Path) -> None:
    file = tmp_path / "job_serve.py"
    file.write_text(
        "import sys\n"
        "from tests.backends.environment_server.test_world import Plain, PlainSettings\n"
        "from agentc_backends.environments.server.program import program\n"
        "opener, main = program(PlainSettings, lambda settings: lambda: Plain(settings))\n"
        "if __name__ == '__main__':\n    sys.exit(main())\n"
    )
    root = Path(__file__).parents[3]
    paths = os.pathsep.join(str(root / part) for part in ("compiler", "backends", "."))
    ready = tmp_path / "ready.json"
    argv = [sys.executable, str(file), "--ready-file", str(ready)]
    variables = {**os.environ, "PYTHONPATH": paths}
    refused = subprocess.run(argv, env=variables, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--times" in refused.stderr
    server = subprocess.Popen([*argv, "--times", "5"], env=variables)
    try:
        while not ready.exists():
            assert server.poll() is None
        assert '"times": 5' in ready.read_text("utf-8")
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 0
    finally:
        server.kill()
