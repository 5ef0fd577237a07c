"""`agentc store verify`: whatever is flipped, cut, removed or added in an object is found, and the
file is named."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_plan import TinyPlan

from agentc.runtime.store.digests import damage_of, manifest_text
from agentc.runtime.store.layout import StoreLayout
from agentc.store.objects import Damage, read_objects, verify_object


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> TinyPlan:
    """A published checkpoint with a link and an empty folder beside its files."""
    plan = TinyPlan(tmp_path_factory.mktemp("verify"))
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    assert plan.run("model").returncode == 0
    folder = plan.store / "staging" / "sft" / "x"
    shutil.copytree(plan.store / "objects" / plan.object("model"), folder)
    (folder / "data" / "empty").mkdir()
    (folder / "data" / "nested").mkdir()
    (folder / "data" / "nested" / "small").write_text("x")
    (folder / "data" / "nothing").write_text("")
    (folder / "data" / "latest").symlink_to("nested/small")
    from agentc.runtime.machine.output_filters import Redactor
    from agentc.runtime.store.staging import Staging, publish

    staging = Staging(StoreLayout(plan.store), "sft/" + "f" * 32)
    staging.path.mkdir(parents=True)
    shutil.copytree(folder / "data", staging.data, symlinks=True)
    shutil.copytree(folder / "logs", staging.logs)
    manifest = {"kind": "sft", "key": "f" * 32, "config": {"text": "naïve \u2028 line"}}
    publish(StoreLayout(plan.store), staging, manifest, Redactor())
    return plan


def problems_of(layout: StoreLayout, name: str) -> list[Damage]:
    found, problems = read_objects(layout, [name])
    return [*problems, *(problem for stored in found for problem in verify_object(stored))]


def entries(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_is_found_and_named(
    whole: TinyPlan, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    name = "sft/" + "f" * 32
    layout = StoreLayout(tmp_path_factory.mktemp("damaged"))
    folder = layout.object(name)
    shutil.copytree(whole.store / "objects" / name, folder, symlinks=True)
    assert problems_of(layout, name) == []
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    paths = entries(folder)
    files = [p for p in paths if (folder / p).is_file() and not (folder / p).is_symlink()]
    what = data.draw(st.sampled_from(["flip", "cut", "grow", "remove", "add", "swap", "replace"]))
    touched: set[str]
    if what == "flip":
        one = data.draw(st.sampled_from([p for p in files if (folder / p).stat().st_size]))
        content = bytearray((folder / one).read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        (folder / one).write_bytes(content)
        touched = {one}
    elif what == "cut":
        one = data.draw(st.sampled_from([p for p in files if (folder / p).stat().st_size]))
        os.truncate(folder / one, data.draw(st.integers(0, (folder / one).stat().st_size - 1)))
        touched = {one}
    elif what == "grow":
        one = data.draw(st.sampled_from(files))
        with (folder / one).open("ab") as out:
            out.write(data.draw(st.binary(min_size=1, max_size=3)))
        touched = {one}
    elif what == "remove":
        one = data.draw(st.sampled_from([p for p in paths if p not in ("data", "logs")]))
        path = folder / one
        if path.is_dir() and not path.is_symlink():
            touched = {one} | {f"{one}/{inner}" for inner in entries(path)}
            shutil.rmtree(path)
        else:
            touched = {one}
            path.unlink()
        # A folder that is empty now is told of too.
        touched.add(os.path.dirname(one))  # noqa: PTH120
    elif what == "add":
        parent = data.draw(st.sampled_from(["", "data/", "logs/", "data/nested/", "data/empty/"]))
        one = parent + data.draw(st.sampled_from(["new", ".hidden", "a b", "ü"]))
        kind = data.draw(st.sampled_from(["file", "folder", "link", "pipe"]))
        if kind == "file":
            (folder / one).write_bytes(b"")
        elif kind == "folder":
            (folder / one).mkdir()
        elif kind == "link":
            (folder / one).symlink_to("artifact.json")
        else:
            os.mkfifo(folder / one)
        touched = {one, parent.rstrip("/")}
    elif what == "swap":
        one, other = "data/nested/small", "data/nothing"
        (folder / one).rename(folder / "x")
        (folder / other).rename(folder / one)
        (folder / "x").rename(folder / other)
        touched = {one, other}
    else:
        one = data.draw(st.sampled_from([*files, "data/latest"]))
        (folder / one).unlink()
        if data.draw(st.booleans()):
            (folder / one).mkdir()
        else:
            (folder / one).symlink_to("elsewhere")
        touched = {one}
    found = problems_of(layout, name)
    assert found, (what, touched)
    assert {problem.object for problem in found} == {name}
    named = {problem.file for problem in found}
    if touched == {"artifact.json"}:
        # What a changed manifest tells of other files need not hold any more.
        assert touched <= named, found
    else:
        assert named <= touched, found
    shutil.rmtree(layout.root)


@given(
    st.dictionaries(
        st.text(max_size=5), st.none() | st.floats() | st.integers() | st.text(max_size=9)
    )
)
def test_manifest_says_itself_whether_it_was_changed(fields: dict[str, object]) -> None:
    text = manifest_text({**fields, "manifest": 2, "files": {}})
    assert damage_of(text) is None
    assert damage_of(text.replace("\n", "\r\n")) is not None
    assert damage_of(text[:-1]) is not None
    assert damage_of(json.dumps(json.loads(text))) is not None
    assert damage_of(text.replace('"manifest": 2', '"manifest": 3')) is not None


def test_manifest_of_an_older_release_is_read() -> None:
    assert damage_of('{"manifest": 1, "files": {}}') is None
    assert damage_of('{"manifest": 1}') == "is no manifest"


def test_object_that_lost_its_manifest_is_damaged(whole: TinyPlan, tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    name = "sft/" + "f" * 32
    shutil.copytree(whole.store / "objects" / name, layout.object(name), symlinks=True)
    layout.manifest(name).unlink()
    assert [str(problem) for problem in problems_of(layout, name)] == [
        f"{name}/artifact.json: the manifest is missing"
    ]
    (layout.root / "objects" / "sft" / "made-by-snakemake").mkdir()
    assert problems_of(layout, "sft/made-by-snakemake") == []
