"""What is in a bundle, and what refuses to be bundled; that it runs is tested end to end."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentc.cli import main
from agentc.diagnostics import Sink
from agentc.lock.document import read_lock
from agentc.runtime.store.manifest import manifest_text


@pytest.fixture
def spec(tmp_path: Path, repository: Path) -> Path:
    """The quickstart, copied."""
    return Path(shutil.copy(repository / "specs" / "quickstart.yaml", tmp_path / "spec.yaml"))


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_all_parts_are_there_and_summed(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle"
    assert main(["bundle", str(spec), "-o", str(bundle)]) == 0
    assert "23 jobs" in capsys.readouterr().out
    found = files(bundle)
    wanted = {
        "README.md", "plan.json", "Snakefile", "config.yaml", "spec.yaml", "spec.lock",
        "environments/light.txt", "environments/torch.txt", "profiles/default/config.yaml",
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
    # Of the compiler nothing but the runtime.
    ours = {name.split("/")[2] for name in found if name.startswith("packages/agentc/")}
    assert ours == {"__init__.py", "runtime"}
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


def test_programs_import_nothing_of_the_compiler(spec: Path, tmp_path: Path) -> None:
    """Job programs, and all that they reach of their package, use the runtime alone."""
    bundle = tmp_path / "bundle"
    assert main(["bundle", str(spec), "-o", str(bundle)]) == 0
    packages = bundle / "packages"
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
            if module.split(".")[0] == "agentc" and module != "agentc":
                assert module.startswith("agentc.runtime"), (name, module)
    assert "agentc_backends.agents.client" in reached
    assert not {name for name in reached if name.endswith(".backend")}


def test_the_wrapper_starts_from_the_bundle_alone(spec: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    assert main(["bundle", str(spec), "-o", str(bundle)]) == 0
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import agentc.runtime.job, agentc.runtime.unit, agentc\n"
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
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / ".cache").write_text("x")
    with_model(spec, "models/tiny")
    bundle = tmp_path / "bundle"
    assert main(["bundle", str(spec), "-o", str(bundle)]) == 0
    assert (bundle / "models/tiny/config.json").read_text() == "{}"
    # The digest leaves hidden files out, and so does the bundle; the spec there is the same spec.
    assert not (bundle / "models/tiny/.cache").exists()
    assert main(["check", "--locked", str(bundle / "spec.yaml")]) == 0


def test_files_elsewhere_are_named(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    inner = tmp_path / "specs"
    inner.mkdir()
    spec = Path(shutil.move(spec, inner / "spec.yaml"))
    with_model(spec, "../model")
    bundle = tmp_path / "bundle"
    words = ["bundle", str(spec), "-o", str(bundle), "--allow-path", str(model)]
    assert main(words) == 0
    assert "lies outside of the spec's folder: ../model" in capsys.readouterr().out
    assert "- `../model`, content " in (bundle / "README.md").read_text()
    assert (model / "config.json").read_text() == "{}"


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
    assert main(["compile", str(spec), "-o", str(tmp_path / "compiled")]) == 0
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
  tested: {kind: evaluate, policy: base, split: test, seed: 0}
""")
    assert main(["bundle", str(spec), "-o", str(tmp_path / "bundle")]) == 0
    found = files(tmp_path / "bundle")
    assert b"variables first: MODEL_TOKEN, TEACHER_KEY." in found["README.md"]
    assert not [name for name, content in found.items() if b"canary-of-a" in content]


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
        lambda b: replace_in(b / "environments/light.txt", "==", "!="),
        "changed: environments/light.txt",
    ),
    "added": (lambda b: add(b / "packages/sitecustomize.py", "x"), "added: packages/sitecust"),
    "environment": (
        lambda b: add(b / ".agentc/store/environments/abc/bin/python", "x"),
        "added: .agentc/store/environments/",
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


def test_hidden_texts_stay_at_home_unless_asked_for(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "agentc: 1\nname: hidden\nenvironments:\n  city: {backend: guess_my_city}\n"
        "stages:\n  hidden: {kind: privileged, split: train}\n"
    )
    assert main(["compile", str(spec), "-o", str(tmp_path / "compiled")]) == 0
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
