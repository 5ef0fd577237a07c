"""What is in a bundle, and what refuses to be bundled; that it runs is tested end to end."""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.emit.bundles import files
from tests.support.model_folder import write_model_folder

import agentc
from agentc.cli import main
from agentc.diagnostics import Sink
from agentc.lock.document import read_lock
from agentc.runtime.store.digests import manifest_text


@pytest.fixture
def spec(tmp_path: Path, repository: Path) -> Path:
    """The quickstart, copied."""
    return Path(shutil.copy(repository / "specs" / "quickstart.yaml", tmp_path / "spec.yaml"))


def test_all_parts_are_there_and_summed(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle"
    assert main(["bundle", str(spec), "-o", str(bundle)]) == 0
    assert "23 jobs" in capsys.readouterr().out
    found = files(bundle)
    wanted = {
        "README.md", "plan.json", "Snakefile", "config.yaml", "spec.yaml", "spec.lock",
        "software/light.txt", "software/torch.txt", "profiles/default/config.yaml",
        "profiles/slurm/config.yaml", "packages/agentc/__init__.py",
        "packages/agentc/runtime/job.py", "packages/agentc_backends/trainers/trl/job_dpo.py",
        "packages/agentc_backends/results/report/templates/page.html.j2",
        "templates/agentc/eto/rounds.yaml",
    }  # fmt: skip
    assert wanted <= set(found)
    sums = found.pop("SHA256SUMS").decode().splitlines()
    assert [line.split("  ", 1) for line in sums] == [
        [hashlib.sha256(content).hexdigest(), name] for name, content in found.items()
    ]
    # Of the compiler nothing but what jobs import.
    ours = {name.split("/")[2] for name in found if name.startswith("packages/agentc/")}
    parts = {"kinds", "program", "runtime", "lease_roles.py", "result_tables.py", "graph"}
    assert ours == {"__init__.py", *parts}
    assert not [name for name in found if "__pycache__" in name]
    assert read_lock(bundle / "spec.lock", Sink()) is not None


def test_no_trace_of_the_machine(spec: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "elsewhere" / "second"
    second.parent.mkdir()
    moved = Path(shutil.copy(spec, second.parent / "spec.yaml"))
    assert main(["bundle", str(spec), "-o", str(first)]) == 0
    assert main(["bundle", str(moved), "-o", str(second)]) == 0
    assert files(first) == files(second)
    for name, content in files(first).items():
        assert str(tmp_path).encode() not in content, name


def imported_names(path: Path) -> set[str]:
    """Every module that a file may import, at whatever depth the statement stands; of
    `from a import b` both `a` and `a.b`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, path
            module = node.module or ""
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names


def _is_module(place: Path) -> bool:
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def test_programs_import_nothing_of_the_compiler(spec: Path, tmp_path: Path) -> None:
    """Job programs, and all that they reach of their package, use the bundle's part of agentc."""
    bundle = tmp_path / "bundle"
    assert main(["bundle", str(spec), "-o", str(bundle)]) == 0
    packages, installed = bundle / "packages", Path(agentc.__file__).parents[1]
    ours = {
        path.relative_to(packages).with_suffix("").as_posix().replace("/", "."): path
        for path in (packages / "agentc_backends").rglob("*.py")
    }
    ours = {name.removesuffix(".__init__"): path for name, path in ours.items()}
    waiting = [name for name, path in ours.items() if path.name.startswith("job_")]
    assert len(waiting) > 30
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in reached or name not in ours:
            continue
        reached.add(name)
        waiting.append(name.rpartition(".")[0])  # a package's __init__ runs before its modules
        imported = imported_names(ours[name])
        waiting.extend(imported)
        for module in sorted(imported):
            place = Path(*module.split("."))
            if place.parts[0] == "agentc" and _is_module(installed / place):
                assert _is_module(packages / place), (name, module)
    assert "agentc_backends.clients" in reached
    assert not {name for name in reached if name.endswith(".backend")}


def test_the_wrapper_starts_from_the_bundle_alone(spec: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    assert main(["bundle", str(spec), "-o", str(bundle)]) == 0
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import agentc.runtime.job, agentc.runtime.wrapper, agentc\n"
        "assert agentc.__file__.startswith(sys.argv[1]), agentc.__file__\n"
        "plan = ['--plan', sys.argv[2], '--store', sys.argv[3], '--job', 'no such']\n"
        "sys.exit(agentc.runtime.job.main(plan))\n"
    )
    # -I: no site of the user, no variables; -S: no site-packages at all, so no agentc.
    words = [str(bundle / "packages"), str(bundle / "plan.json"), str(tmp_path / "store")]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "has no job named 'no such'" in done.stderr


def with_model(spec: Path, path: str) -> None:
    """Let the spec's model be a directory of this machine."""
    head, rest = spec.read_text().split("models:\n", 1)
    _, stages = rest.split("stages:\n", 1)
    models = f"models:\n  base: {{backend: path, path: {path}, chat_format: chatml}}\n\nstages:\n"
    spec.write_text(head + models + stages)


def test_files_beside_the_spec_come_along(spec: Path, tmp_path: Path) -> None:
    model = tmp_path / "models" / "tiny"
    write_model_folder(model)
    (model / ".cache").write_text("x")
    with_model(spec, "models/tiny")
    bundle = tmp_path / "bundle"
    assert main(["bundle", str(spec), "-o", str(bundle)]) == 0
    written = (model / "config.json").read_text()
    assert (bundle / "models/tiny/config.json").read_text() == written
    # The digest leaves hidden files out, and so does the bundle; the spec there is the same spec.
    assert not (bundle / "models/tiny/.cache").exists()
    assert main(["check", "--locked", str(bundle / "spec.yaml")]) == 0


def test_files_elsewhere_are_named(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    written = (write_model_folder(model) / "config.json").read_text()
    inner = tmp_path / "specs"
    inner.mkdir()
    spec = Path(shutil.move(spec, inner / "spec.yaml"))
    with_model(spec, "../model")
    bundle = tmp_path / "bundle"
    words = ["bundle", str(spec), "-o", str(bundle), "--allow-path", str(model)]
    assert main(words) == 0
    assert "lies outside of the spec's folder: ../model" in capsys.readouterr().out
    assert "- `../model`, content " in (bundle / "README.md").read_text()
    assert (model / "config.json").read_text() == written


def test_nothing_is_written_over(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine").write_text("precious")
    assert main(["bundle", str(spec), "-o", str(taken)]) == 2
    assert "there already" in capsys.readouterr().err
    assert files(taken) == {"mine": b"precious"}
    (tmp_path / "empty").mkdir()
    assert main(["bundle", str(spec), "-o", str(tmp_path / "empty")]) == 0


def test_a_failure_leaves_nothing(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["bundle", str(spec), "-o", str(blocked / "bundle")]) == 2
    assert "cannot write" in capsys.readouterr().err
    spec.write_text(spec.read_text().replace("lr: 3e-4", "lr: many"))
    assert main(["bundle", str(spec), "-o", str(tmp_path / "bundle")]) == 1
    assert not (tmp_path / "bundle").exists()


@pytest.fixture
def stored(spec: Path, tmp_path: Path) -> Path:
    """A store that has the first job's object, as its plan names it."""
    assert main(["bundle", "--bare", str(spec), "-o", str(tmp_path / "compiled")]) == 0
    job = json.loads((tmp_path / "compiled" / "plan.json").read_text())["jobs"][0]
    folder = tmp_path / "store" / "objects" / job["kind"] / job["key"]
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "rows").write_text("1\n")
    manifest = {
        "kind": job["kind"],
        "key": job["key"],
        "files": {"data/rows": hashlib.sha256(b"1\n").hexdigest()},
    }
    (folder / "artifact.json").write_text(manifest_text({"manifest": 2, **manifest}))
    return folder


def test_results_come_along_when_they_are_whole(
    spec: Path, stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bundle", str(spec), "--with-results", "--store", str(tmp_path / "store"), "-o"]
    assert main([*words, str(tmp_path / "bundle")]) == 0
    assert "23 jobs, results of 1" in capsys.readouterr().out
    carried = tmp_path / "bundle/.agentc/store/objects" / stored.parent.name / stored.name
    assert files(carried) == files(stored)
    (stored / "data" / "rows").write_text("2\n")
    assert main([*words, str(tmp_path / "second")]) == 4
    assert "damaged" in capsys.readouterr().err
    assert not (tmp_path / "second").exists()


def test_results_that_are_not_there(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bundle", str(spec), "--with-results", "--store", str(tmp_path / "store"), "-o"]
    assert main([*words, str(tmp_path / "bundle")]) == 5
    assert "has no result of this experiment" in capsys.readouterr().err


def test_the_readme_names_secrets_and_holds_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEACHER_KEY", "canary-of-a-key")
    monkeypatch.setenv("MODEL_TOKEN", "canary-of-a-token")
    spec = tmp_path / "secrets.yaml"
    spec.write_text("""\
agentc: 1
name: secrets
environments: {craft: {backend: textcraft}}
servers:
  teacher:
    backend: openai
    url: https://api.example.org/v1
    model: teacher
    api_key: {secret: TEACHER_KEY}
prompts: {plain: {instruction: Craft the goal.}}
models:
  base:
    backend: hf
    repo: a/b
    revision: f5db02db724555f92da89c216ac04704f23d4590
    token: {secret: MODEL_TOKEN}
stages:
  tested: {kind: evaluate, model: base, split: test, seed: 0}
""")
    assert main(["bundle", str(spec), "-o", str(tmp_path / "bundle")]) == 0
    found = files(tmp_path / "bundle")
    assert b"variables first: MODEL_TOKEN, TEACHER_KEY." in found["README.md"]
    assert not [name for name, content in found.items() if b"canary-of-a" in content]


def test_hidden_texts_stay_at_home_unless_asked_for(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "agentc: 1\nname: hidden\nenvironments:\n  city: {backend: guess_my_city}\n"
        "stages:\n  hidden: {kind: privileged, split: train}\n"
    )
    assert main(["bundle", "--bare", str(spec), "-o", str(tmp_path / "compiled")]) == 0
    job = json.loads((tmp_path / "compiled" / "plan.json").read_text())["jobs"][0]
    object_folder = Path("objects") / job["kind"] / job["key"]
    data = tmp_path / "store" / object_folder / "data"
    data.mkdir(parents=True)
    (data / "privileged.jsonl").write_text("{}\n")
    digest = hashlib.sha256(b"{}\n").hexdigest()
    manifest = {"manifest": 2, "kind": job["kind"], "key": job["key"],
                "files": {"data/privileged.jsonl": digest}}  # fmt: skip
    (data.parent / "artifact.json").write_text(manifest_text(manifest))
    words = ["bundle", str(spec), "--with-results", "--store", str(tmp_path / "store"), "-o"]
    assert main([*words, str(tmp_path / "plain")]) == 0
    assert not (tmp_path / "plain/.agentc/store" / object_folder).exists()
    assert main([*words, str(tmp_path / "whole"), "--with-hidden"]) == 0
    assert (tmp_path / "whole/.agentc/store" / object_folder / "data/privileged.jsonl").exists()


def test_hidden_texts_are_asked_for_with_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bundle", str(tmp_path / "spec.yaml"), "--with-hidden", "-o", str(tmp_path / "bundle")]
    assert main(words) == 2
    assert "--with-results" in capsys.readouterr().err
    assert not (tmp_path / "bundle").exists()
