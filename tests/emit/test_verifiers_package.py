"""`agentc dev export verifiers`: a package that plays what is played here, by its own world
always, and by verifiers, unmodified, where that is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.backends.servers.conformance import started
from tests.emit.played_here import played_here
from tests.support.built_software import ROOT, built_python

from agentc.cli import main
from agentc_backends.software import VERIFIERS

WORLD = """\
import json, sys
from pathlib import Path
here = Path(sys.argv[1])
sys.path.insert(0, str(here / "packages"))
from agentc_backends.agents.exported.world import ExportedWorld
world = ExportedWorld(here / "environment.json")
task = list(world.splits()["test"])[3]
episode = world.begin(task, seed=3, reply_format=sys.argv[2])
rows = [[episode.observation, episode.done]]
for reply in sys.argv[3:]:
    episode.answer(reply)
    rows.append([episode.observation, episode.done])
print(json.dumps([task, rows, episode.reward, episode.invalid]))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "crafting"
    assert main(["dev", "export", "verifiers", "textcraft", "max_depth=2", "-o", str(folder)]) == 0
    return folder


def test_its_world_needs_no_package_and_plays_what_is_played_here(package: Path) -> None:
    actions, rows = played_here()
    told = {}
    for form, before in (("react", "I act.\nAction: "), ("action_only", "")):
        replies = [before + action for action in actions]
        command = [sys.executable, "-I", "-S", "-c", WORLD, str(package / "textcraft_env"), form]
        done = subprocess.run([*command, *replies], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        told[form] = json.loads(done.stdout)
    assert told["react"][1:] == [rows, 1.0, 0]
    assert told["react"] == told["action_only"]


def test_an_entry_of_a_spec_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, folder = str(ROOT / "specs" / "quickstart.yaml"), tmp_path / "new"
    assert main(["dev", "export", "verifiers", "--spec", spec, "practice", "-o", str(folder)]) == 0
    assert "the package `practice_env` for verifiers" in capsys.readouterr().out
    held = json.loads((folder / "practice_env" / "environment.json").read_text("utf-8"))
    assert held["settings"]["recipes"] == "invented"


def test_what_no_taskset_can_hold_is_refused(
    tmp_path: Path, package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = ["url=http://127.0.0.1:1", "splits={test: {range: [0, 3]}}"]
    for words, says in (
        (["openenv", *url], "a third party"),
        (["sciworld"], "needs its server"),
        (["guess_my_city"], "only the standard library: agentc_backends.environments.guessing"),
    ):
        assert main(["dev", "export", "verifiers", *words, "-o", str(tmp_path / "new")]) == 3
        assert says in capsys.readouterr().err
        assert not [*tmp_path.iterdir()]
    assert main(["dev", "export", "verifiers", "textcraft", "-o", str(package)]) == 3
    assert "exists already" in capsys.readouterr().err


@pytest.mark.long
def test_verifiers_plays_the_installed_package(package: Path, tmp_path: Path) -> None:
    python, site, home = built_python(VERIFIERS), tmp_path / "site", tmp_path / "home"
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-build-isolation"]
    into = ["--python", sys.executable, "--no-deps", "--target", str(site)]
    subprocess.run([*install, *into, str(package)], check=True)
    # The loop of verifiers is a script that it has `uv` prepare; that of jobs fetches nothing.
    prepare = (
        "import sys, pathlib; "
        "from agentc_backends.agents.verifiers.uv_command import prepare_home; "
    )
    ours = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    words = [python, "-c", prepare + "prepare_home(pathlib.Path(sys.argv[1]), ())", str(home)]
    subprocess.run(words, env={**os.environ, "PYTHONPATH": ours}, check=True)

    actions, rows = played_here()
    replies = ["I wait.", *(f"I act.\nAction: {action}" for action in actions)]
    rules = [{"turn": turn, "reply": reply} for turn, reply in enumerate(replies)]
    arguments = ["--rules", json.dumps(rules), "--model", str(tmp_path), "--max-model-len", "65536"]
    module = "agentc_backends.servers.scripted.job_serve"
    settings = {"split": "test", "seed": 3}
    with started(sys.executable, module, arguments, tmp_path) as (url, _):
        player = str(Path(__file__).with_name("verifiers_player.py"))
        command = [python, player, "textcraft-env", json.dumps(settings), task_of(package), url]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False,
            env={**os.environ, "HOME": str(home), "PYTHONPATH": str(site),
                 "PLAYER_KEY": "test-token"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["errors"] == []
    assert told["tasks"] > 3
    (role, _), *said = told["said"]
    assert role == "system"
    shown = [rows[0][0], "There is no action in the reply.", *(text for text, _ in rows[1:-1])]
    turns = zip(shown, replies, strict=True)
    assert said == [
        each for seen, reply in turns for each in (["user", seen], ["assistant", reply])
    ]
    assert (told["reward"], told["metrics"]["success"]) == (1.0, 1.0)
    assert told["metrics"]["invalid_replies"] == 1.0


def task_of(package: Path) -> str:
    """The name of the task that is played here."""
    command = [sys.executable, "-I", "-S", "-c", WORLD, str(package / "textcraft_env"), "react"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return str(json.loads(done.stdout)[0])
