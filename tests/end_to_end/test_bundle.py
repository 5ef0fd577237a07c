"""A bundle reruns where agentc is not installed, and a compiled directory under bare Snakemake;
both make what `agentc run` makes, byte for byte.

DPO is the exception: of two series of three runs each, one had a run (that of `agentc run`, on a
busy machine) whose reference pass differed in the last digits. What comes after DPO is compared by
the files that there are.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from smoke import Smoke, agentc

pytestmark = pytest.mark.slow


def made(store: Path) -> dict[str, dict[str, str]]:
    """Sha256 of the files of every artifact, by `kind/key`, "" for those of DPO and what was made
    from it; the report tells times, so it is never the same twice."""
    manifests = {}
    for path in sorted((store / "objects").glob("*/*/artifact.json")):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["kind"] not in ("report", "session"):
            manifests[f"{manifest['kind']}/{manifest['key']}"] = manifest

    def settled(name: str) -> bool:
        inputs = manifests[name]["inputs"].values()
        parents = [parent for names in inputs for parent in names]
        return manifests[name]["kind"] != "dpo" and all(map(settled, parents))

    found = {}
    for name, manifest in manifests.items():
        files = {k: v for k, v in manifest["files"].items() if k.startswith("data/")}
        found[name] = files if settled(name) else dict.fromkeys(files, "")
    return found


def one_of_each_kind(store: Path) -> dict[str, str]:
    """The report and, of each kind of what it is made from, the object that is nearest to it."""
    found, pending = (
        dict[str, str](),
        [f"report/{path.name}" for path in store.glob("objects/report/*")],
    )
    while pending:
        name = pending.pop(0)
        if found.setdefault(name.partition("/")[0], name) == name:
            text = (store / "objects" / name / "artifact.json").read_text(encoding="utf-8")
            pending += [parent for names in json.loads(text)["inputs"].values() for parent in names]
    return found


def snakemake(python: Path, directory: Path) -> str:
    """Run `snakemake -c2` in a directory as its README says; returns what it prints."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "AGENTC_STORE", "PYTHONHOME")
    }
    done = subprocess.run(
        [str(python), "-m", "snakemake", "-c2"],
        cwd=directory,
        env={**variables, "HOME": str(directory.parent)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """An interpreter that has Snakemake and what belongs to it, and not agentc."""
    found = importlib.util.find_spec("snakemake")
    if found is None or found.origin is None:
        pytest.skip("needs `pip install .[run]`")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True
    )
    python = tmp_path / "bare" / "bin" / "python"
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    # Everything is lent but agentc, of which an editable install leaves data files there.
    for entry in Path(found.origin).parent.parent.iterdir():
        if not entry.name.startswith("agentc") and entry.suffix != ".pth":
            (site / entry.name).symlink_to(entry)
    absent = subprocess.run(
        [str(python), "-c", "import snakemake, agentc"], capture_output=True, text=True, check=False
    )
    assert "No module named 'agentc'" in absent.stderr
    return python


@pytest.mark.long
def test_a_compiled_directory_makes_the_same_under_bare_snakemake(
    smoke: Smoke, tmp_path: Path
) -> None:
    agentc("compile", smoke.spec, "-o", tmp_path / "compiled")
    snakemake(Path(sys.executable), tmp_path / "compiled")
    assert made(tmp_path / "compiled" / ".agentc" / "store") == made(smoke.store)


def test_a_bundle_has_nothing_to_do_and_makes_the_same_without_agentc(
    smoke: Smoke, bare_python: Path, tmp_path: Path
) -> None:
    bundle, expected = tmp_path / "bundle", made(smoke.store)
    agentc("bundle", smoke.spec, "-o", bundle, "--with-results", "--store", smoke.store)
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=bundle, check=True)
    store = bundle / ".agentc" / "store"
    assert made(store) == expected
    assert "Nothing to be done" in snakemake(bare_python, bundle)
    reports = list((bundle / ".agentc/store/objects/report").glob("*/data/index.html"))
    readme = (bundle / "README.md").read_text(encoding="utf-8")
    assert [str(path.relative_to(bundle)) in readme for path in reports] == [True]
    # The report is made again, with one result of each program among those it is made from.
    lost = one_of_each_kind(store)
    assert {name.partition("/")[0] for name in expected} <= lost.keys()
    for name in (*lost.values(), "session"):
        if (store / "objects" / name).exists():
            subprocess.run(["chmod", "-R", "u+w", str(store / "objects" / name)], check=True)
            shutil.rmtree(store / "objects" / name)
    snakemake(bare_python, bundle)
    assert made(store) == expected
    # Jobs ran from the bundle's own packages.
    links = [path.resolve() for path in (store / "code").glob("*/*") if path.is_symlink()]
    assert links
    assert all(path.is_relative_to(bundle / "packages") for path in links)
    assert "Nothing to be done" in snakemake(bare_python, bundle)
    assert "nothing to do" in agentc("run", smoke.spec, "--store", store)
