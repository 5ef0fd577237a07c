"""A distribution of somebody else, built as a wheel and installed beside agentc: its backends are
used from a spec, held to the conformance kit, and reported by name when they are broken."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

from agentc.runtime.software.job_software import ensure_software
from agentc.runtime.store.layout import StoreLayout

SOURCE = Path(__file__).parent / "acme"
DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = "".join(
    (DOCS / page).read_text(encoding="utf-8")
    for page in ("backends_guide.md", "backends_programs.md")
)
Agentc = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = pytest.mark.slow
"""A wheel is built and installed, and every command is a process of its own."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built by the distribution's own build backend, installed apart from agentc."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    isolation = ["--no-build-isolation"] if find_spec("hatchling") else []
    _pip("wheel", "--no-deps", *isolation, "--wheel-dir", str(folder), str(folder / "source"))
    [wheel] = folder.glob("*.whl")
    _pip("install", "--no-deps", "--no-index", "--target", str(folder / "site"), str(wheel))
    return folder / "site"


@pytest.fixture
def site(installed: Path, tmp_path: Path) -> Path:
    """A copy of what is installed, for a test to break."""
    return Path(shutil.copytree(installed, tmp_path / "site"))


@pytest.fixture
def agentc(site: Path, tmp_path: Path) -> Agentc:
    """Runs a command of agentc with the distribution installed, in a folder with its spec."""
    shutil.copy(SOURCE / "spec.yaml", tmp_path / "spec.yaml")
    variables = {**os.environ, "PYTHONPATH": str(site)}

    def run(*words: str, **further: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("agentc")), *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=PATIENCE_S,
            env={**variables, **further},
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done

    return run


def _pip(*words: str) -> None:
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def test_the_kit_passes(agentc: Agentc) -> None:
    done = agentc("dev", "conformance", "acme.pair", "--set", "sources=self")
    assert done.returncode == 0, done.stdout
    done = agentc("dev", "conformance", "env.guess")
    assert done.returncode == 0, done.stdout
    assert "it conforms" in done.stdout


def test_a_spec_finds_them_by_their_short_names(agentc: Agentc) -> None:
    assert agentc("check", "spec.yaml").returncode == 0
    explained = agentc("explain", "pairs", "spec.yaml").stdout
    assert "backend: acme.pair, version 1 (the spec names it)" in explained
    assert re.search(r"^ *shortest_first +false +spec\.yaml:\d+$", explained, re.MULTILINE)
    planned = agentc("plan", "spec.yaml")
    assert planned.returncode == 0
    assert "acme.pair" in planned.stdout + agentc("plan", "spec.yaml", "--json").stdout


def test_the_schema_for_editors_has_their_settings(agentc: Agentc) -> None:
    schema = agentc("dev", "schema").stdout
    assert "Of equally good attempts take the one with fewer turns." in schema
    assert "The numbers are 1 to this one." in schema


def test_a_setting_that_it_does_not_read_is_an_error(agentc: Agentc, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(spec.read_text().replace("sources: self", "sources: self, max_per_task: 3"))
    said = agentc("check", "spec.yaml")
    assert said.returncode == 1
    assert "acme.pair does not read it here" in said.stderr + said.stdout
    assert "`pair.contrast` would honour it" in said.stderr + said.stdout


def test_a_bundle_takes_its_package_along(agentc: Agentc, tmp_path: Path) -> None:
    done = agentc("bundle", "spec.yaml", "-o", "bundle")
    assert done.returncode == 0, done.stderr
    packages = tmp_path / "bundle" / "packages"
    assert (packages / "acme_agents" / "job_pair.py").is_file()
    assert (packages / "agentc_backends" / "environments" / "server" / "process.py").is_file()


def test_a_run_does_the_work(agentc: Agentc, tmp_path: Path, repository: Path) -> None:
    shared = Path(os.environ.get("AGENTC_SOFTWARE", repository / ".agentc" / "software"))
    if len(list(shared.glob("*/bin/python"))) < 2:
        pytest.skip(f"no software stacks in {shared}; `make software` builds them")
    environments = tmp_path / "software"
    environments.mkdir()
    for place in shared.iterdir():  # its own one is built here, and nowhere else
        (environments / place.name).symlink_to(place)
    done = agentc("run", "spec.yaml", AGENTC_SOFTWARE=str(environments))
    assert done.returncode == 0, done.stdout + done.stderr
    objects = tmp_path / ".agentc" / "store" / "objects"
    [made] = (objects / "pair").iterdir()
    manifest = json.loads((made / "artifact.json").read_text())
    assert (manifest["backend"], manifest["software"]["name"]) == ("acme.pair", "acme")
    rows = [json.loads(line) for line in (made / "data" / "pairs.jsonl").open()]
    assert manifest["facts"]["pairs"] == len(rows) > 0
    assert {(row["chosen_reward"], row["rejected_reward"]) for row in rows} == {(1.0, 0.0)}
    for row in rows:  # the last guess of the better attempt is the number itself
        assert row["chosen"][-1]["content"] == f"Action: {row['task_id']}"


BROKEN = {
    "heavy import": (
        "backend.py", "from importlib import resources", "import numpy\nfrom importlib import "
        "resources", "imports numpy",
    ),
    "loose pin": ("acme.lock", "# Nothing", "httpx2>=2.16\n# Nothing", "httpx2>=2.16"),
    "no hash": ("acme.lock", "# Nothing", "httpx2==2.16.2\n# Nothing", "has no hash for httpx2"),
    "setting without effect": (
        "backend.py", 'view.number("margin"),', 'view.number("margin") * 0,',
        "changes nothing that the job receives",
    ),
    "key without the setting": (
        "backend.py", "view=view,", "view=view.scoped(),",
        "changes what the job receives, and not its key",
    ),
    "another time": (
        "backend.py", '"margin": view', '"now": __import__("time").time_ns(), "margin": view',
        "lowering twice differs: config",
    ),
    "order of a set": (
        "backend.py", '"margin": view',
        '"words": list({"a", "b", "c", "d", "e", "f", "g"}), "margin": view',
        "lowering gives other jobs in another process",
    ),
    "lowering raises": (
        "backend.py", "    return (\n", "    view.values['nothing']\n    return (\n",
        "acme.pair failed to lower this (KeyError: 'nothing')",
    ),
    "no such program": (
        "backend.py", "acme_agents.job_pair", "acme_agents.job_pears",
        "there is no module acme_agents.job_pears",
    ),
    "program does nothing": (
        "job_pair.py", '\n\nif __name__ == "__main__":\n    sys.exit(main())', "",
        "acme_agents.job_pair does nothing under `python -m`",
    ),
    "compiler in a program": (
        "job_pair.py", "import sys\n", "import sys\nfrom agentc.ir import module  # noqa\n",
        "acme_agents.job_pair imports agentc.ir",
    ),
    "fixed version": (
        "backend.py", "version=PAIR.version", "version=7", "says version 7 of acme.pair",
    ),
    "input is lost": (
        "backend.py", 'inputs={"rollouts": rollouts}', "inputs={}",
        "no job takes the input rollouts",
    ),
    "placeholder told": (
        "backend.py", '"margin": view', '"of": [*rollouts], "margin": view',
        "a job holds what its view has for an input",
    ),
    "wrong product": (
        "backend.py", "produces=PREFERENCE_PAIRS.name", 'produces="Pears"',
        "the last job produces Pears",
    ),
    "no words": ("backend.py", "The best attempt at each task against its worst.", "", "`doc`"),
    "setting of the kind": (
        "backend.py", 'boolean("shortest_first",', 'boolean("margin",', "declared twice",
    ),
    "import fails": (
        "backend.py", "from importlib import resources", "import no_such_package\nfrom importlib "
        "import resources", "cannot be imported: ModuleNotFoundError",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BROKEN))
def test_the_kit_catches_a_broken_one(agentc: Agentc, site: Path, name: str) -> None:
    file, old, new, complaint = BROKEN[name]
    _break(site / "acme_agents" / file, old, new)
    done = agentc("dev", "conformance", "acme.pair", "--set", "sources=self")
    assert done.returncode == 1, done.stdout
    assert complaint in done.stdout + done.stderr


def test_the_kit_starts_the_program_and_sees_what_it_ignores(
    agentc: Agentc, site: Path, tmp_path: Path
) -> None:
    text = (site / "acme_agents" / "acme.lock").read_text()
    ensure_software(StoreLayout(tmp_path / "store"), _sha256(text), text)
    environments = {"AGENTC_SOFTWARE": str(StoreLayout(tmp_path / "store").software)}
    words = ("dev", "conformance", "acme.pair", "--set", "sources=self", "--run")
    assert "passed   config read" in agentc(*words, **environments).stdout
    _break(site / "acme_agents" / "job_pair.py", 'job.config["shortest_first"]', "True")
    done = agentc(*words, **environments)
    assert done.returncode == 1
    assert "the job program ignored: shortest_first" in done.stdout


@pytest.mark.parametrize(
    ("name", "code"), [("lowering raises", "AGC605"), ("import fails", "AGC601")]
)
def test_check_reports_a_broken_one_by_name(
    agentc: Agentc, site: Path, name: str, code: str
) -> None:
    file, old, new, _ = BROKEN[name]
    _break(site / "acme_agents" / file, old, new)
    done = agentc("check", "spec.yaml")
    assert done.returncode == 1
    assert code in done.stdout + done.stderr
    assert "acme" in done.stdout + done.stderr


def test_a_name_that_is_not_installed(agentc: Agentc) -> None:
    done = agentc("dev", "conformance", "acme.pear")
    assert done.returncode == 5
    assert "acme.pair" in done.stderr


@pytest.mark.parametrize(
    "file", [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.*")
             if path.suffix in (".toml", ".lock", ".yaml", ".py") and path.name != "__init__.py"],
)  # fmt: skip
def test_the_guide_shows_this_very_code(file: str) -> None:
    blocks = GUIDE.split("```")
    told = dict(zip(blocks[::2], blocks[1::2], strict=False))
    [block] = [code for before, code in told.items() if before.rstrip().endswith(f"`{file}`:")]
    assert block.split("\n", 1)[1] == (SOURCE / file).read_text(encoding="utf-8")


def _break(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def _sha256(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def test_the_guides_test_suite_runs(site: Path, tmp_path: Path) -> None:
    blocks = GUIDE.split("```")
    [suite] = [block for block in blocks if "checks_of(SUBJECT)" in block]
    (tmp_path / "test_acme.py").write_text(suite.removeprefix("python\n"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_acme.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    assert done.returncode == 0, done.stdout
