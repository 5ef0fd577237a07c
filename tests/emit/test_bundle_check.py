"""A bundle that somebody was sent: `agentc bundle --check` finds what was changed in it, and
executes nothing of it. What is in a bundle: `test_bundle.py`."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from tests.emit.bundles import files

from agentc.cli import main


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A bundle of the quickstart at another seed, as somebody sends it."""
    folder = tmp_path_factory.mktemp("sent")
    spec = shutil.copy(repository / "specs" / "quickstart.yaml", folder / "spec.yaml")
    words = ["bundle", str(spec), "-o", str(folder / "bundle"), "-p", "seed=7", "--scale", "smoke"]
    assert main(words) == 0
    return folder / "bundle"


def sum_again(bundle: Path) -> None:
    """As a careful forger does."""
    found = files(bundle)
    found.pop("SHA256SUMS")
    lines = [f"{hashlib.sha256(found[name]).hexdigest()}  {name}\n" for name in sorted(found)]
    (bundle / "SHA256SUMS").write_text("".join(lines))


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def add(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def link_as_result(bundle: Path) -> None:
    """Listed with the sum of nothing, which is what a link was once read as."""
    name = ".agentc/store/objects/sft/00/data/a.safetensors"
    (bundle / name).parent.mkdir(parents=True)
    (bundle / name).symlink_to("/etc/hostname")
    with (bundle / "SHA256SUMS").open("a") as sums:
        sums.write(f"{hashlib.sha256(b'').hexdigest()}  {name}\n")


FORGERIES = {
    "Snakefile": (
        lambda b: replace_in(b / "Snakefile", "import", "import os; os.system('id')\nimport"),
        "changed: Snakefile",
    ),
    "package": (
        lambda b: add(b / "packages/agentc/runtime/job.py", "print('mine')"),
        "changed: packages/agentc/runtime/job.py",
    ),
    "program": (
        lambda b: replace_in(b / "plan.json", "trainers.trl.job_sft", "trainers.trl.job_dpo"),
        "].program[1]",
    ),
    "setting": (
        lambda b: replace_in(b / "plan.json", '"processes": 1', '"processes": 2'),
        "].processes",
    ),
    "lock": (
        lambda b: replace_in(b / "software/light.txt", "==", "!="),
        "changed: software/light.txt",
    ),
    "added": (lambda b: add(b / "packages/sitecustomize.py", "x"), "added: packages/sitecust"),
    "environment": (
        lambda b: add(b / ".agentc/store/software/abc/bin/python", "x"),
        "added: .agentc/store/software/",
    ),
    "link": (
        lambda b: ((b / "config.yaml").unlink(), (b / "config.yaml").symlink_to("/etc/hostname")),
        "changed: config.yaml",
    ),
    "link for a result": (lambda b: link_as_result(b), "objects/sft/00/data/a.safetensors (it is"),
    "lost": (lambda b: (b / "packages/agentc/__init__.py").unlink(), "missing: packages/agentc/__"),
}


@pytest.mark.parametrize("summed", [True, False], ids=["summed again", "not summed"])
def test_a_check_finds_every_forgery_at_once_and_executes_nothing(
    summed: bool, sent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = Path(shutil.copytree(sent, tmp_path / "bundle"))
    assert main(["bundle", "--check", str(bundle)]) == 0
    assert "seed = 7" in capsys.readouterr().out
    for forge, _ in FORGERIES.values():
        forge(bundle)
    if summed:
        sum_again(bundle)
    before = files(bundle)
    assert main(["bundle", "--check", str(bundle)]) == 1
    said = capsys.readouterr().out
    for name, (_, words) in FORGERIES.items():
        assert words in said, name
    assert ("unlike its sum: Snakefile" in said) == (not summed)
    assert files(bundle) == before


def test_a_check_waits_for_no_pipe_and_passes_over_no_folder(
    sent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = Path(shutil.copytree(sent, tmp_path / "bundle"))
    (bundle / "plan.json").unlink()
    os.mkfifo(bundle / "plan.json")
    assert main(["bundle", "--check", str(bundle)]) == 2
    assert "no plan.json" in capsys.readouterr().err
    if os.getuid() == 0:
        return  # root lists every folder
    closed = Path(shutil.copytree(sent, tmp_path / "closed")) / "packages"
    closed.chmod(0o111)
    assert main(["bundle", "--check", str(closed.parent)]) == 2
    closed.chmod(0o755)


def test_a_check_needs_a_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bundle", "--check", str(tmp_path)]) == 2
    assert "is no bundle" in capsys.readouterr().err
    assert main(["bundle"]) == 2
    assert "--check DIR" in capsys.readouterr().err


def test_a_bundle_says_that_it_is_code(sent: Path) -> None:
    readme = (sent / "README.md").read_text()
    assert "This directory is code" in readme
    assert "agentc bundle --check" in readme
    assert "lost or damaged" in readme
