"""`software:` in a spec: its lock takes the place of a backend's, keys change with it, and what
cannot be read, lies outside or has no effect is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import Compilation, compile_spec

HASH = "--hash=sha256:" + "0" * 64
SPEC = """\
agentc: 1
name: demo
environments:
  craft: {backend: textcraft}
stages:
  expert: {kind: expert, split: train}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.txt").write_text(f"# agentc: python 3.12\nhttpx2==2.16.2 {HASH}\n")
    return tmp_path


def compiled(folder: Path, software: str = "") -> Compilation:
    path = folder / "spec.yaml"
    path.write_text(SPEC + software)
    return compile_spec(path, {}, load_backends())


def test_the_specs_lock_replaces_the_backends_and_enters_every_key(folder: Path) -> None:
    before, after = compiled(folder).plan, compiled(folder, "software: {light: own.txt}\n").plan
    assert before is not None
    assert after is not None
    assert after.software["light"].lock == (folder / "own.txt").read_text()
    assert not {job.key for job in before.jobs} & {job.key for job in after.jobs}
    (folder / "own.txt").write_text(f"httpx2==2.16.1 {HASH}\n")
    again = compiled(folder, "software: {light: own.txt}\n").plan
    assert again is not None
    assert again.jobs[0].key != after.jobs[0].key


@pytest.mark.parametrize(("extra", "code"), [(0, None), (1, "AGC674"), (100, "AGC674")])
def test_a_lock_of_more_than_1_mb_is_refused(folder: Path, extra: int, code: str | None) -> None:
    """One that is cut would lack packages, and build without them."""
    start = f"httpx2==2.16.2 {HASH}\n"
    lock = start + "#" * ((1 << 20) - len(start) - 1 + extra) + "\n"
    (folder / "own.txt").write_text(lock)
    found = compiled(folder, "software: {light: own.txt}\n")
    if code is None:
        assert found.plan is not None
        assert found.plan.software["light"].lock == lock
    else:
        assert [each.code for each in found.diagnostics] == [code]
        assert "own.txt cannot be read: it is larger than 1 MB" in found.diagnostics[0].message


@pytest.mark.parametrize(
    ("software", "code", "said"),
    [
        ("{lihgt: own.txt}", "AGC673", "no backend of this experiment uses"),
        ("{torch: own.txt}", "AGC673", "no backend of this experiment uses"),
        ("{light: nothing.txt}", "AGC674", "No such file"),
        ("{light: .}", "AGC674", "Is a directory"),
        ("{light: ../../etc/hosts}", "AGC123", "outside of the spec's folder"),
        ("{light: bad.txt}", "AGC671", "line 1, `# agentc: pyhton 3.10`"),
        ("{light: plain.txt}", "AGC675", "plain.txt has no hash for httpx2, idna"),
        ("{light: [own.txt]}", "AGC208", "cannot be a list"),
        ("{light: '{{ x }}.txt'}", "AGC208", "cannot be"),
        ("own.txt", "AGC203", "software"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, software: str, code: str, said: str) -> None:
    (folder / "bad.txt").write_text("# agentc: pyhton 3.10\n")
    (folder / "plain.txt").write_text(f"anyio==1.0 {HASH}\nhttpx2==2.16.2\nidna==3.20\n")
    found = compiled(folder, f"software: {software}\n")
    assert found.plan is None
    assert [(each.code, said in each.message) for each in found.diagnostics] == [(code, True)]
    assert found.diagnostics[0].span is not None


@pytest.mark.parametrize(
    ("software", "code", "words"),
    [
        ("{light: {python: /opt/torch/bin/python3}}", "AGC208", "cannot be a mapping"),
        ("{light: /opt/torch/bin/python3}", "AGC123", "outside of the spec's folder"),
        ("{light: env}", "AGC674", "Is a directory"),
        ("{light: pytorch.sif}", "AGC674", "No such file"),
        ("{light: site.txt}", "AGC675", "no hash for httpx2, torch"),
    ],
)
def test_what_to_write_where_a_machine_has_the_software(
    folder: Path, software: str, code: str, words: str
) -> None:
    (folder / "env").mkdir()
    (folder / "site.txt").write_text("httpx2==2.16.2\ntorch==2.11.0+cu130\n")
    (found,) = compiled(folder, f"software: {software}\n").diagnostics
    assert found.code == code
    assert words in found.message
    said = " ".join((*found.notes, str(found.fix)))
    assert "installed already (conda, `module load`, a virtual environment) cannot be used" in said
    assert "agentc software hash" in said
    assert "--allow-path" not in said, "it would end in another error"
    if code == "AGC675":
        assert "PyPI has no torch==2.11.0+cu130" in said
    else:
        assert "# agentc: container" in said
        assert "AGENTC_PYTHON_3_12" in said


def test_a_lock_in_another_place_is_allowed_by_name(folder: Path) -> None:
    """The advice about machines' own software is for what is no lock."""
    (found,) = compiled(folder, "software: {light: ../locks/own.txt}\n").diagnostics
    assert found.code == "AGC123"
    assert "--allow-path" in str(found.fix)
    (missing,) = compiled(folder, "software: {light: other.txt}\n").diagnostics
    assert (missing.notes, missing.fix) == ((), None)
