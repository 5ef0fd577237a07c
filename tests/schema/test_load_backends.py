"""Backends of other distributions: a broken one is reported by name, and the rest stays usable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec


def install(folder: Path, name: str, entry: str, code: str) -> None:
    """A distribution as pip leaves it: a package, and metadata that announces a backend."""
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[agentc.backends]\n{entry} = {name}:BACKEND\n")
    (folder / f"{name}.py").write_text(code)


@pytest.mark.parametrize(
    ("entry", "code", "complaint"),
    [
        (
            "mine.sft",
            "import no_such_package\n",
            "backend mine.sft of acme 1.2 cannot be imported: "
            "ModuleNotFoundError: No module named 'no_such_package'",
        ),
        ("mine.sft", "BACKEND = 3\n", "acme:BACKEND, backend mine.sft of acme 1.2, is no backend"),
        (
            "mine.sft",
            "from agentc_backends.trainers.trl.backend import SFT as BACKEND\n",
            "backend mine.sft of acme 1.2 calls itself trl.sft",
        ),
        (
            "mine.other",
            "from dataclasses import replace\n"
            "from agentc_backends.trainers.trl.backend import SFT\n"
            "BACKEND = replace(SFT, id='mine.other')\n",
            "backend mine.other of acme 1.2 would not be found: its id must have `sft` in it",
        ),
        (
            "trl.sft",
            "from dataclasses import replace\n"
            "from agentc_backends.trainers.trl.backend import SFT\n"
            "BACKEND = replace(SFT, doc='Another.')\n",
            "backend trl.sft is claimed by acme 1.2 and agent-experiment-compiler ",
        ),
    ],
)
def test_a_broken_distribution_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, code: str, complaint: str
) -> None:
    install(tmp_path, "acme", entry, code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    table = load_backends()
    assert entry not in table.backends
    assert len(table.broken) == 1
    assert complaint in table.broken[0]
    assert "trl.dpo" in table.backends


def test_only_what_a_spec_names_is_imported(repository: Path) -> None:
    """A stranger's module, and the time that it takes, is a matter of the specs that use it."""
    code = (
        "import sys; from pathlib import Path\n"
        "from agentc.backend_api import load_backends\n"
        "from agentc.compilation import compile_spec\n"
        f"found = compile_spec(Path({str(repository / 'specs/quickstart.yaml')!r}), {{}}, "
        "load_backends())\n"
        "assert found.plan is not None\n"
        "print(*(name for name in sys.modules if name.endswith('.backend')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    named = {name.removeprefix("agentc_backends.") for name in done.stdout.split()}
    assert "environments.textcraft.backend" in named
    assert "trainers.trl.backend" in named
    assert named.isdisjoint(
        {
            "environments.webshop.backend",
            "environments.sciworld.backend",
            "servers.encoder.backend",
            "agents.search.backend",
        }
    )


def test_check_warns_and_goes_on(tmp_path: Path, repository: Path) -> None:
    install(tmp_path, "acme", "mine.sft", "import no_such_package\n")
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("agentc")),
            "check",
            str(repository / "specs/quickstart.yaml"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert "AGC609" in done.stdout + done.stderr
    assert "acme 1.2" in done.stdout + done.stderr


def test_the_shipped_backends_are_whole(repository: Path) -> None:
    table = load_backends()
    assert len(list(table)) > 40
    assert not table.broken
    assert compile_spec(repository / "specs/quickstart.yaml", {}, table).plan is not None
