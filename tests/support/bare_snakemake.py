"""Snakemake where agentc is not installed: an interpreter without it, a run of a compiled directory
or a bundle, and what a store holds afterwards.

DPO's bytes are not compared: of two series of three runs each, one had a run (that of `agentc run`,
on a busy machine) whose reference pass differed in the last digits. What comes after DPO is
compared by the files that there are.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest


def made(store: Path) -> dict[str, dict[str, str]]:
    """Sha256 of the files of every artifact, by `kind/key`, "" for those of DPO and what was made
    from it. The report, which tells times, and hidden texts, which no bundle has, are left out."""
    manifests = {}
    for path in sorted((store / "objects").glob("*/*/artifact.json")):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["kind"] not in ("report", "session", "privileged"):
            manifests[f"{manifest['kind']}/{manifest['key']}"] = manifest

    def settled(name: str) -> bool:
        inputs = manifests[name]["inputs"].values()
        parents = [parent for names in inputs for parent in names]
        return manifests[name]["kind"] != "dpo" and all(
            settled(parent) for parent in parents if parent in manifests
        )

    found = {}
    for name, manifest in manifests.items():
        files = {k: v for k, v in manifest["files"].items() if k.startswith("data/")}
        found[name] = files if settled(name) else dict.fromkeys(files, "")
    return found


def one_of_each_kind(store: Path, kinds: Collection[str]) -> dict[str, str]:
    """The report and, of each of these kinds, the object that is nearest to it among the inputs of
    objects that were found."""
    found: dict[str, str] = {}
    pending = [f"report/{path.name}" for path in store.glob("objects/report/*")]
    while pending:
        name = pending.pop(0)
        kind = name.partition("/")[0]
        if kind in kinds and found.setdefault(kind, name) == name:
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


def python_without_agentc(folder: Path) -> Path:
    """An interpreter that has Snakemake and what belongs to it, and not agentc."""
    found = importlib.util.find_spec("snakemake")
    if found is None or found.origin is None:
        pytest.skip("needs Snakemake")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder / "bare")], check=True
    )
    python = folder / "bare" / "bin" / "python"
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
