"""The recipes of CONTRIBUTING.md: each diff of docs/recipes applies to a copy of the tree as it is
now, and what it adds works. That page says how to make a diff anew that no longer applies.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "docs" / "recipes"
PARTS = ("compiler", "backends", "specs", "templates", "tests/plan", "tests/support")
FILES = ("pyproject.toml", "Snakefile", "README.md", "docs/commands.md", "tests/conftest.py")
_GROUP = "agentc.backends"
_AGENTC = "import sys; from agentc.cli import main; sys.exit(main())"

EXPERT = """\
agentc: 1
name: recipe
environments: {world: {backend: ENVIRONMENT}}
models:
  base: {backend: scratch, chat_format: chatml, corpus: expert, context: 512}
stages:
  expert: {kind: expert, environment: world, split: train, limit: 3}
"""
SFT = """\
  sft: {kind: sft, model: base, data: DATA, lr: 1e-4, global_batch: 2, max_length: 512}
"""
LEARN = """\
  learn:
    {kind: online_rl, algorithm: reinforce, model: base, environment: world, split: train,
     iterations: 2, episodes: 4, max_turns: 4, decode: {max_tokens: 8}}
"""
HEAD = "  first: {kind: head, data: expert, rows: 2}\n"
MIX = """\
  mixed:
    {kind: mix, backend: concatenate, agent: expert, general: other, general_share: 1.0,
     share_of: agent}
  other: {kind: expert, environment: world, split: train, limit: 3, seed: 1}
"""


class Tree:
    """A copy of the tree with a recipe applied."""

    def __init__(self, folder: Path, recipe: str) -> None:
        self.root = folder / "tree"
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc", ".agentc", "cases", "node_modules")
        for part in PARTS:
            shutil.copytree(ROOT / part, self.root / part, ignore=ignored)
        for name in FILES:
            (self.root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.variables = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder)}
        self._done("git", "apply", "--verbose", str(RECIPES / f"{recipe}.diff"))
        self._announce()
        places = [self.root / "compiler", self.root / "backends", self.root / "site", self.root]
        self.variables["PYTHONPATH"] = os.pathsep.join(map(str, places))

    def _announce(self) -> None:
        """What `pip install -e .` would do with entry points that the recipe adds."""
        before, after = (
            tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"][
                _GROUP
            ]
            for folder in (ROOT, self.root)
        )
        new = [f"{name} = {place}" for name, place in after.items() if name not in before]
        metadata = self.root / "site" / "recipe-1.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: recipe\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text("\n".join([f"[{_GROUP}]", *new, ""]))

    def _done(self, *words: str) -> str:
        done = subprocess.run(
            words, cwd=self.root, env=self.variables, capture_output=True, text=True, check=False,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def agentc(self, *words: str) -> str:
        """What a command prints; it must succeed."""
        return self._done(sys.executable, "-c", _AGENTC, *words)

    def python(self, *words: str) -> str:
        """The same of Python."""
        return self._done(sys.executable, *words)

    def imports(self) -> None:
        """What is new imports only what it may."""
        self._done(str(Path(sys.executable).with_name("lint-imports")))

    def spec(self, text: str) -> str:
        """The path of a spec."""
        path = self.root / "recipe.yaml"
        path.write_text(text)
        return str(path)


def test_a_check(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "check")
    example = "compiler/agentc/diagnostics/examples/AGC618"
    assert "warning[AGC618]" in tree.agentc("check", f"{example}/failing.yaml")
    assert "no errors" in tree.agentc("check", f"{example}/fixed.yaml")
    assert "AGC618" in tree.agentc("explain", "AGC618")


def test_a_verb(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "verb")
    tree.imports()
    assert "dpo" in tree.agentc("kinds")
    tree.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/plan/test_kinds_command.py")


def test_an_environment(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "environment")
    tree.imports()
    assert "it conforms" in tree.agentc("dev", "conformance", "env.counting", "--run")
    spec = tree.spec(
        EXPERT.replace("ENVIRONMENT", "counting, numbers: 4") + SFT.replace("DATA", "expert")
    )
    assert "no errors" in tree.agentc("check", spec)


def test_a_backend_of_a_kind(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "backend")
    tree.imports()
    assert "it conforms" in tree.agentc("dev", "conformance", "mix.concatenate")
    text = EXPERT.replace("ENVIRONMENT", "textcraft") + MIX + SFT.replace("DATA", "mixed")
    assert "no errors" in tree.agentc("check", tree.spec(text))


def test_a_kind(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "kind")
    tree.imports()
    assert "it conforms" in tree.agentc("dev", "conformance", "head.rows")
    text = EXPERT.replace("ENVIRONMENT", "textcraft") + HEAD + SFT.replace("DATA", "first")
    assert "first" in tree.agentc("plan", tree.spec(text), "--store", str(tmp_path / "store"))


def test_an_algorithm(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "algorithm")
    tree.imports()
    assert "it conforms" in tree.agentc("dev", "conformance", "reinforce.online_rl")
    text = EXPERT.replace("ENVIRONMENT", "corridor, tasks: 8") + LEARN
    tree.agentc("run", tree.spec(text), "--store", str(tmp_path / "store"))
    (curve,) = (tmp_path / "store").glob("objects/online_rl/*/data/curve.jsonl")
    assert [json.loads(line)["actor"] for line in curve.read_text().splitlines()]


def files_of(recipe: Path) -> list[str]:
    """What a diff touches."""
    return re.findall(r"^diff --git a/(\S+)", recipe.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("*.diff")), ids=lambda path: path.stem)
def test_the_page_counts_the_files(recipe: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (line,) = (line for line in page.splitlines() if f"docs/recipes/{recipe.name})" in line)
    assert f"| {len(files_of(recipe))} |" in line
