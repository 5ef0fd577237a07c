"""Backends that a spec brings along, without a distribution: the package of the guide, beside a
spec. Loaded with consent alone, run from the plan's text, in the keys file by file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

SOURCE = Path(__file__).parent / "acme" / "acme_agents"
PLAYED = """\
agentc: 1
name: playing
backends: [acme_agents]
environments:
  game: {backend: guess, highest: 8}
stages:
  expert: {kind: expert, split: train}
"""
Agentc = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = pytest.mark.slow
"""Every command is a process of its own."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A spec with the package beside it."""
    shutil.copytree(SOURCE, tmp_path / "acme_agents", ignore=shutil.ignore_patterns("__pycache__"))
    text = (SOURCE.parent / "spec.yaml").read_text(encoding="utf-8")
    brought = text.replace("environments:", "backends: [acme_agents]\nenvironments:", 1)
    (tmp_path / "spec.yaml").write_text(brought, encoding="utf-8")
    return tmp_path


@pytest.fixture
def agentc(folder: Path) -> Agentc:
    """Runs a command of agentc in that folder."""

    def run(*words: str, **further: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("agentc")), *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            timeout=PATIENCE_S,
            env={**os.environ, **further},
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done

    return run


def test_no_code_runs_without_consent(agentc: Agentc, folder: Path) -> None:
    trap = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
    backend = folder / "acme_agents" / "backend.py"
    backend.write_text(trap + backend.read_text())
    for words in (
        ("check",),
        ("check", "--allow-path", "."),
        ("plan", "--allow-code", "elsewhere"),
    ):
        done = agentc(words[0], "spec.yaml", *words[1:])
        assert done.returncode == 1
        found = done.stdout + done.stderr
        assert "AGC758" in found
        assert found.count("error[") == 1  # what follows from it is not said
        assert not (folder / "acme_agents" / "ran").exists()
        assert not (folder / "acme_agents" / "__pycache__").exists()
    assert agentc("check", "spec.yaml", AGENTC_ALLOW_CODE=str(folder)).returncode == 0
    assert (folder / "acme_agents" / "ran").exists()


def test_a_folder_is_trusted_once(agentc: Agentc, folder: Path) -> None:
    own = {"XDG_CONFIG_HOME": str(folder / "config")}
    refused = agentc("check", "spec.yaml", **own)
    assert refused.returncode == 1
    assert "`agentc trust .`, once" in refused.stdout + refused.stderr
    assert agentc("trust", ".", **own).returncode == 0
    job = folder / "acme_agents" / "job_pair.py"
    job.write_text(job.read_text() + "# edited since\n")
    assert agentc("check", "spec.yaml", **own).returncode == 0
    job.chmod(0o666)
    refused = agentc("check", "spec.yaml", **own)
    assert refused.returncode == 1
    assert f"{job} is in a trusted folder, but every user" in refused.stdout + refused.stderr


def test_its_files_are_in_keys_and_plan(agentc: Agentc, folder: Path) -> None:
    allowed = ("--allow-code", ".")
    assert agentc("bundle", "--bare", "spec.yaml", "-o", "one", *allowed).returncode == 0
    job = folder / "acme_agents" / "job_pair.py"
    job.write_text(job.read_text() + "# another one\n")
    assert agentc("bundle", "--bare", "spec.yaml", "-o", "two", *allowed).returncode == 0
    one, two = (json.loads((folder / name / "plan.json").read_text()) for name in ("one", "two"))
    keys = [{each["id"]: each["key"] for each in plan["jobs"]} for plan in (one, two)]
    assert keys[0]["expert"] != keys[1]["expert"]  # it is played in that package's world
    assert keys[0]["pairs"] != keys[1]["pairs"]
    assert two["code"]["acme_agents"]["acme_agents/job_pair.py"] == job.read_text()
    bundled = agentc("bundle", "spec.yaml", "-o", "bundle", *allowed)
    assert bundled.returncode == 0, bundled.stderr
    assert (folder / "bundle" / "acme_agents" / "job_pair.py").read_text() == job.read_text()


def test_it_is_explained_and_examined(agentc: Agentc, folder: Path) -> None:
    trusted = {"AGENTC_ALLOW_CODE": str(folder)}
    explained = agentc("explain", "guess", "spec.yaml", **trusted)
    assert explained.stdout.startswith("env.guess: an environment"), explained.stderr
    refused = agentc("dev", "conformance", "acme_agents/")
    assert (refused.returncode, "`agentc trust .`" in refused.stderr) == (2, True)
    examined = agentc("dev", "conformance", "acme_agents/", **trusted)
    assert "env.guess, version 1" in examined.stdout, examined.stderr
    assert "passed   pure: lowering twice gives the same" in examined.stdout
    missing = agentc("dev", "conformance", "acme_agent.py")
    assert "there is no Python file" in missing.stderr


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("bad.py", "def f(:\n", "cannot be imported: SyntaxError"),
        ("empty.py", "x = 1\n", "`empty` holds no StageBackend"),
        ("json.py", "x = 1\n", "Python has a module `json` already"),
        ("two-words.py", "x = 1\n", "`two-words` can be the name of no Python module"),
        ("dir.py/file", "", "no folder with an `__init__.py`"),
        ("again.py", "from acme_agents.backend import PAIR\n", "is installed already"),
    ],
)
def test_code_that_gives_none(
    name: str, text: str, said: str, agentc: Agentc, folder: Path
) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    spec = folder / "spec.yaml"
    named = name.partition("/")[0]
    spec.write_text(spec.read_text().replace("[acme_agents]", f"[acme_agents, {named}]"))
    done = agentc("check", "spec.yaml", "--allow-code", ".")
    assert done.returncode == 1
    assert f"error[AGC759]: `{named}` gives no backends" in done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def test_a_file_without_its_ending(agentc: Agentc, folder: Path) -> None:
    (folder / "vault.py").write_text("x = 1\n")
    spec = folder / "spec.yaml"
    spec.write_text(spec.read_text().replace("[acme_agents]", "[acme_agents, vault]"))
    for consent in (["--allow-code", "."], []):
        done = agentc("check", "spec.yaml", *consent)
        assert done.returncode == 1
        assert "did you mean `vault.py`?" in done.stdout + done.stderr


def test_a_run(agentc: Agentc, folder: Path) -> None:
    """Its world is served, its expert plays; a job has the text of the plan."""
    (folder / "spec.yaml").write_text(PLAYED, encoding="utf-8")
    done = agentc("run", "spec.yaml", "--allow-code", ".", "--plain")
    assert done.returncode == 0, done.stdout + done.stderr
    [made] = (folder / ".agentc" / "store" / "objects" / "expert").glob("*/data/*.jsonl")
    assert all(json.loads(row)["success"] for row in made.read_text().splitlines())
    (server,) = (folder / "acme_agents").glob("job_guess.py")
    server.write_text(server.read_text() + "# another one\n")
    why = agentc("why", "spec.yaml", "expert", "--allow-code", ".")
    assert "  acme_agents/job_guess.py changed" in why.stdout.splitlines()
