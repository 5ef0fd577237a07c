"""Looking up which objects a store has: right whatever lies in it, and in few system calls."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentc.runtime.store.layout import StoreLayout
from agentc.store.presence import find_published, listed_names, staged_names

JOBS = 10_000
KINDS = ("dpo", "evaluate", "pair", "rollout", "sft")


def make(layout: StoreLayout, name: str, *, whole: bool = True) -> None:
    layout.object(name).mkdir(parents=True)
    if whole:
        layout.manifest(name).write_text("{}")


def names(count: int) -> list[str]:
    return [f"{KINDS[number % 5]}/{number:032x}" for number in range(count)]


def test_same_as_a_look_at_each(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    assert find_published(layout, names(3)) == set()
    for number, name in enumerate(names(100)):
        if number % 7:
            make(layout, name, whole=number % 3 > 0)
    wanted = {name for name in names(100) if layout.is_published(name)}
    assert 0 < len(wanted) < 100
    for _ in range(3):  # without an index, and with one
        assert find_published(layout, names(100)) == wanted
    assert (tmp_path / "index.json").exists()
    # An object that is deleted and whose folder Snakemake makes again is not there.
    gone = sorted(wanted)[0]
    shutil.rmtree(layout.object(gone))
    assert gone not in find_published(layout, names(100))
    layout.object(gone).mkdir()
    assert gone not in find_published(layout, names(100))
    layout.manifest(gone).write_text("{}")
    assert gone in find_published(layout, names(100))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sft": 3}', '{"sft": {"x": "y"}}'])
def test_index_that_is_none_costs_time_only(tmp_path: Path, text: str) -> None:
    layout = StoreLayout(tmp_path)
    for name in names(20):
        make(layout, name)
    (tmp_path / "index.json").write_text(text)
    assert find_published(layout, names(30)) == set(names(20))
    assert json.loads((tmp_path / "index.json").read_text())


def test_store_that_cannot_be_written_to_is_looked_at_all_the_same(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    for name in names(20):
        make(layout, name)
    (tmp_path / "index.json").mkdir()  # nobody can replace that, root neither
    assert find_published(layout, names(20)) == set(names(20))


def test_hidden_names_are_nothing(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    make(layout, "sft/a")
    (tmp_path / "objects" / "sft" / ".look-node-1").touch()
    assert listed_names(layout, ["sft"]) == {"sft/a"}
    (tmp_path / "staging" / "sft" / "b").mkdir(parents=True)
    (tmp_path / "staging" / "sft" / ".gone-1").mkdir()
    assert staged_names(layout) == {"sft/b"}


def calls(layout: StoreLayout, log: Path) -> int:
    """System calls on files that finding all the work of a plan takes, beyond those of imports."""
    script = (
        "import sys\n"
        "from agentc.plan.work import find_work, read_plan\n"
        "from agentc.runtime.store.layout import StoreLayout\n"
        "from pathlib import Path\n"
        "layout = StoreLayout(sys.argv[1])\n"
        "plan = read_plan(layout.root / 'plan.json')\n"
        "Path('/begin').exists()\n"
        "work = find_work(plan, layout)\n"
        "Path('/end').exists()\n"
        "print(len(work.present), len(work.missing))\n"
    )
    words = ["strace", "-f", "-e", "trace=%file,getdents64,read,fstat", "-o", str(log)]
    done = subprocess.run(
        [*words, sys.executable, "-c", script, str(layout.root)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(JOBS), "0"]
    lines = log.read_text().splitlines()
    begin = next(number for number, line in enumerate(lines) if '"/begin"' in line)
    end = next(number for number, line in enumerate(lines) if '"/end"' in line)
    return end - begin - 1


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, to count system calls")
def test_plan_of_ten_thousand_jobs_over_a_filled_store(tmp_path: Path) -> None:
    """Less than a hundredth of a call for each job, once the store was looked at."""
    layout = StoreLayout(tmp_path)
    for kind in KINDS:
        (tmp_path / "objects" / kind).mkdir(parents=True)
    for name in names(JOBS):
        folder = f"{tmp_path}/objects/{name}"
        os.mkdir(folder)  # noqa: PTH102
        os.close(os.open(folder + "/artifact.json", os.O_CREAT))
    made = names(JOBS)
    jobs = [
        {"id": str(number), "stage": str(number), "kind": name[:-33], "key": name[-32:],
         "inputs": {"x": made[max(0, number - 1) : number]}, "leases": [], "software": "e"}
        for number, name in enumerate(made)
    ]  # fmt: skip
    document = {"jobs": jobs, "targets": [made[-1]], "sessions": [], "software": {}}
    (tmp_path / "plan.json").write_text(json.dumps(document))
    first = calls(layout, tmp_path / "first.log")
    assert first < 1.2 * JOBS
    again = calls(layout, tmp_path / "again.log")
    print(f"{first} calls at the first look, {again} at the next")
    assert again < 150
