"""`agentc lock` and --locked on a real spec: what is pinned, what a change is told as."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from locking import codes, lock_of
from tests.support.model_folder import CONFIG, write_model_folder

from agentc import resources
from agentc.cli import main
from agentc_backends.trainers.trl.backend import SFT

TEMPLATES = resources.templates()


def test_a_lock_holds_what_the_plan_rests_on(spec: Path) -> None:
    assert main(["lock", str(spec)]) == 0
    lock = lock_of(spec)
    assert set(lock.section("software")) == {"light", "torch"}
    assert lock.section("params") == {"rounds": 2, "seed": 0}
    assert lock.section("backends")["trl.sft"] == SFT.version
    assert str(lock.section("jobs")["eto.2.dpo"]).startswith("dpo/")
    text = spec.with_suffix(".lock").read_text()
    assert str(spec.parent) not in text


def test_locking_again_writes_the_same_bytes(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lock", str(spec)]) == 0
    first = spec.with_suffix(".lock")
    before = first.stat().st_mtime_ns
    assert main(["lock", str(spec)]) == 0
    assert first.stat().st_mtime_ns == before
    assert "nothing changed" in capsys.readouterr().out
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copy = Path(shutil.copy(spec, elsewhere))
    assert main(["lock", str(copy), "-o", str(elsewhere / "agentc.lock")]) == 0
    assert (elsewhere / "agentc.lock").read_bytes() == first.read_bytes()


def test_locked_wants_a_lock(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert codes(capsys, spec) == (0, [])
    assert codes(capsys, spec, "--locked") == (1, ["error AGC740"])
    assert main(["lock", str(spec)]) == 0
    assert codes(capsys, spec, "--locked") == (0, [])


def test_an_edit_of_the_spec_is_told(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lock", str(spec)]) == 0
    text = spec.read_text()
    spec.write_text(text.replace("# ETO", "# A comment changes nothing. ETO"))
    assert codes(capsys, spec, "--locked") == (0, [])
    assert "lr: 3e-4" in text
    spec.write_text(text.replace("lr: 3e-4", "lr: 4e-4"))
    assert codes(capsys, spec) == (0, ["warning AGC743"])
    assert codes(capsys, spec, "--locked") == (1, ["error AGC743"])
    assert main(["lock", "--check", str(spec)]) == 1
    shown = capsys.readouterr().err
    assert "note: lr: 0.0003 -> 0.0004 (eto.1.dpo, eto.2.dpo)" in shown
    assert "note: 9 more jobs follow from that" in shown
    assert main(["lock", str(spec)]) == 0
    shown = capsys.readouterr().out
    assert "jobs: 11 of 23 have other keys" in shown
    assert "lr: 0.0003 -> 0.0004 (eto.1.dpo, eto.2.dpo)" in shown
    assert main(["lock", "--check", str(spec)]) == 0


def test_a_lock_of_before_settings_were_held(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lock", str(spec)]) == 0
    path = spec.with_suffix(".lock")
    older = path.read_text().partition("\n# What enters the key")[0].replace("lock: 2", "lock: 1")
    path.write_text(older)
    capsys.readouterr()
    assert main(["lock", "--check", str(spec)]) == 0
    assert "holds" in capsys.readouterr().out
    spec.write_text(spec.read_text().replace("lr: 3e-4", "lr: 4e-4"))
    assert main(["lock", "--check", str(spec)]) == 1
    assert "note: changed: eto.1.dpo, " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan", "bundle --bare", "run"])
def test_commands_refuse_when_locked(
    command: str, spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {
        "plan": ["--store", str(tmp_path / "store")],
        "bundle --bare": ["-o", str(tmp_path / "out")],
        "run": ["--store", str(tmp_path / "store"), "--dry-run"],
    }[command]
    assert main(["lock", str(spec)]) == 0
    assert main([*command.split(), str(spec), "--locked", *more]) == 0
    spec.write_text(spec.read_text().replace("lr: 3e-4", "lr: 4e-4"))
    assert main([*command.split(), str(spec), *more]) == 0
    assert main([*command.split(), str(spec), "--locked", *more]) == 1
    assert "error[AGC743]" in capsys.readouterr().err


def test_a_changed_environment_is_named_where_it_stands(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lock", str(spec)]) == 0
    path = spec.with_suffix(".lock")
    torch = str(lock_of(spec).section("software")["torch"])
    path.write_text(path.read_text().replace(torch, "0" * 64))
    assert main(["check", "--locked", str(spec)]) == 1
    shown = capsys.readouterr().err
    line = next(n for n, t in enumerate(path.read_text().splitlines(), 1) if "torch:" in t)
    assert f"{path}:{line}:3: error[AGC742]: the software stack `torch`" in shown
    assert f"now {torch[:16]}" in shown


def test_templates_are_locked(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = spec.parent / "mine.yaml"
    shipped = TEMPLATES / "evaluate.yaml"
    mine.write_text(shipped.read_text())
    text = spec.read_text()
    spec.write_text(text.replace("use: evaluate\n", "use: ./mine.yaml\n", 1))
    assert spec.read_text() != text
    assert main(["lock", str(spec)]) == 0
    assert {"./mine.yaml", "evaluate", "eto/rounds"} <= set(lock_of(spec).section("templates"))
    assert codes(capsys, spec, "--locked") == (0, [])
    mine.write_text("# A new comment.\n" + mine.read_text())
    # What it expands to is the same, so the jobs are; it is still not the file that was locked.
    assert codes(capsys, spec, "--locked") == (1, ["error AGC742"])
    mine.write_text(mine.read_text().replace("kind: evaluate", "kind: evaluate\n  seed: 7"))
    code, found = codes(capsys, spec, "--locked")
    assert code == 1
    assert "error AGC742" in found


def test_another_scale_is_other_work(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lock", str(spec), "--scale", "smoke"]) == 0
    assert lock_of(spec).scale == "smoke"
    assert codes(capsys, spec, "--locked", "--scale", "smoke") == (0, [])
    assert codes(capsys, spec, "--locked") == (0, [])
    assert main(["lock", "--check", str(spec), "--scale", "smoke"]) == 0
    spec.write_text(spec.read_text().replace("explore: {limit: 12", "explore: {limit: 13"))
    assert codes(capsys, spec, "--locked") == (0, [])
    assert codes(capsys, spec, "--locked", "--scale", "smoke") == (1, ["error AGC743"])


def test_other_params_are_no_change_of_the_world(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lock", str(spec)]) == 0
    assert codes(capsys, spec, "--locked", "-p", "seed=7", "-p", "rounds=1") == (0, [])
    path = spec.with_suffix(".lock")
    torch = str(lock_of(spec).section("software")["torch"])
    path.write_text(path.read_text().replace(torch, "0" * 64))
    assert codes(capsys, spec, "-p", "seed=7") == (0, ["warning AGC742"])


def test_a_broken_lock_stops_only_locked_commands(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec.with_suffix(".lock").write_text("lock: 9\n")
    assert codes(capsys, spec) == (0, ["warning AGC741"])
    assert codes(capsys, spec, "--locked") == (1, ["error AGC741"])
    assert main(["lock", str(spec)]) == 0
    assert codes(capsys, spec, "--locked") == (0, [])


def test_a_directory_is_locked_by_content(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = spec.parent / "model"
    write_model_folder(model)
    text = spec.read_text()
    head, rest = text.split("models:\n", 1)
    _, stages = rest.split("stages:\n", 1)
    models = "models:\n  base: {backend: path, path: model, chat_format: chatml}\n\nstages:\n"
    spec.write_text(head + models + stages)
    assert main(["lock", str(spec)]) == 0
    assert list(lock_of(spec).section("files")) == ["model"]
    assert codes(capsys, spec, "--locked") == (0, [])
    write_model_folder(model, {**CONFIG, "rope_theta": 5000.0})
    code, found = codes(capsys, spec, "--locked")
    assert (code, found) == (1, ["error AGC742", "error AGC743"])


def test_a_spec_with_errors_gets_no_lock(spec: Path) -> None:
    spec.write_text(spec.read_text().replace("lr: 3e-4", "lr: many"))
    assert main(["lock", str(spec)]) == 1
    assert not spec.with_suffix(".lock").exists()


def test_a_lock_that_cannot_be_written(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lock", str(spec), "-o", str(spec.parent / "no" / "such.lock")]) == 2
    assert "cannot write" in capsys.readouterr().err
