"""Two nodes on one shared file system that shows names of other nodes seconds late (a FUSE mount
for each, `late_mount.py`): nothing is computed twice, nothing is missed, and a node that loses its
power is taken over from."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from node import Node, fuse_python, why_impossible
from tests.support.patience import NEVER_S, PATIENCE_S, wait_for
from tiny_plan import TinyPlan

IMPOSSIBLE = why_impossible()
ENVIRONMENTS = os.environ.get("AGENTC_SOFTWARE")
DELAY_S = 3.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(IMPOSSIBLE is not None, reason=f"two nodes: {IMPOSSIBLE}"),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fuse_python(Path(ENVIRONMENTS or tmp_path_factory.mktemp("fuse")))


@pytest.fixture
def nodes(python: Path, tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    backing, shared = tmp_path / "backing", tmp_path / "shared"
    both = (
        Node(python, "north", backing, shared, DELAY_S),
        Node(python, "south", backing, shared, DELAY_S),
    )
    yield both
    for node in both:
        node.power_off()


@pytest.fixture
def plan(nodes: tuple[Node, Node], tmp_path: Path) -> TinyPlan:
    """A plan whose store lies on the shared file system; its software does not."""
    tiny = TinyPlan(tmp_path)
    tiny.store = nodes[0].shared / "store"
    return tiny


def published(node: Node, plan: TinyPlan, job: str) -> bool:
    manifest = plan.store / "objects" / plan.object(job) / "artifact.json"
    return node.run("test", "-e", str(manifest)).returncode == 0


def backing(plan: TinyPlan) -> Path:
    """The store behind the mounts."""
    return plan.store.parent.with_name("backing") / "store"


def units(journal: Path) -> list[int]:
    """What was computed, by `counted.py`'s own word."""
    lines = [line.split() for line in journal.read_text().splitlines()]
    return sorted(int(words[2]) for words in lines if words[0] == "unit")


def remember(node: Node, plan: TinyPlan) -> None:
    """The node learns what is (not) there."""
    node.run("ls", "-R", str(plan.store))


def test_the_mount_shows_late_what_another_node_makes(nodes: tuple[Node, Node]) -> None:
    """The instrument itself."""
    north, south = nodes
    file = str(north.shared / "file")
    assert south.run("ls", str(south.shared)).stdout == ""
    began = time.monotonic()
    assert north.run("sh", "-c", f"echo x > {file}").returncode == 0
    assert north.run("cat", file).stdout == "x\n"
    seen = south.run("cat", file)
    if time.monotonic() - began < DELAY_S:
        assert "No such file" in seen.stderr
    wait_for(lambda: south.run("cat", file).stdout == "x\n")
    # What this node changes itself makes it look again.
    assert north.run("sh", "-c", f"echo y > {file}2").returncode == 0
    assert south.run("sh", "-c", f"echo z > {file}3; cat {file}2").stdout == "y\n"
    # flock holds within a node only.
    holding = north.start(["flock", file, "sleep", str(NEVER_S)])
    wait_for(lambda: north.run("flock", "-n", file, "true").returncode == 1)
    assert south.run("flock", "-n", file, "true").returncode == 0
    holding.kill()
    holding.wait()


def test_input_that_another_node_published_this_moment_is_waited_for(
    nodes: tuple[Node, Node], plan: TinyPlan
) -> None:
    north, south = nodes
    plan.job("first", rows=1)
    plan.job("second", rows=1, inputs={"x": ["first"]}, kind="pair")
    plan.write()
    remember(south, plan)
    assert north.run(*plan.argv("first")).returncode == 0
    done = south.run(*plan.argv("second"))
    assert done.returncode == 0, done.stderr
    assert (backing(plan) / "objects" / plan.object("second") / "artifact.json").exists()


def test_two_nodes_compute_a_key_once(nodes: tuple[Node, Node], plan: TinyPlan) -> None:
    """The second waits for the first, whose flock it cannot see, and then believes its word that
    the object is there although it does not show yet."""
    north, south = nodes
    journal = plan.folder / "journal"
    plan.job("once", "counted.py", journal=str(journal), units=20, delay=0.2)
    plan.write()
    first = north.start(plan.argv("once"))
    wait_for(lambda: journal.exists())
    second = south.start(plan.argv("once"))
    said, _ = second.communicate(timeout=PATIENCE_S)
    first.communicate(timeout=PATIENCE_S)
    assert (first.returncode, second.returncode) == (0, 0), said
    assert "another run works on" in said
    assert "on north" in said
    assert units(journal) == list(range(20))


def test_node_that_loses_its_power_is_taken_over_from(
    nodes: tuple[Node, Node], plan: TinyPlan
) -> None:
    north, south = nodes
    journal = plan.folder / "journal"
    plan.job("once", "counted.py", journal=str(journal), units=30, delay=0.2)
    plan.write()
    short = {"AGENTC_LOCK_STALE_S": "6"}
    first = north.start(plan.argv("once"), **short)
    wait_for(lambda: journal.exists() and len(journal.read_text().splitlines()) > 3)
    north.power_off()
    first.communicate(timeout=PATIENCE_S)
    began = time.monotonic()
    done = south.run(*plan.argv("once"), **short)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began >= 5, "nothing but its silence says that the node is gone"
    # It went on from what was staged.
    assert units(journal) == list(range(30))


@pytest.mark.parametrize("fault", ["after", "before"])
def test_rename_that_answers_an_error(nodes: tuple[Node, Node], plan: TinyPlan, fault: str) -> None:
    """The reply to the rename that publishes is an error: once it was carried out, once not."""
    north, _ = nodes
    plan.job("job", rows=40, delay=0.05)
    plan.write()
    process = north.start(plan.argv("job"))
    progress = backing(plan) / "staging" / plan.object("job") / "progress.json"
    wait_for(progress.exists)
    # Renames of folders come with publishing: data, logs, and then the object itself.
    faults = north.faults
    wait_for(lambda: (backing(plan) / "staging" / plan.object("job") / "publish" / "logs").exists())
    faults.write_text(fault)
    said, _ = process.communicate(timeout=PATIENCE_S)
    manifest = backing(plan) / "objects" / plan.object("job") / "artifact.json"
    assert not faults.exists(), "the fault was used"
    if fault == "after":
        assert process.returncode == 0, said
        assert manifest.exists()
    else:
        assert process.returncode == 1
        assert "cannot write the object" in said
        assert "EIO" in said
        assert not manifest.exists()
        done = north.run(*plan.argv("job"))
        assert done.returncode == 0, done.stderr
        assert manifest.exists()


def test_file_that_is_open_elsewhere_does_not_fail_a_published_job(
    nodes: tuple[Node, Node], plan: TinyPlan
) -> None:
    """Removing an open file leaves one under another name, and its folder cannot be removed."""
    north, _ = nodes
    plan.job("job", rows=20, delay=0.1)
    plan.write()
    process = north.start(plan.argv("job"))
    staging = plan.store / "staging" / plan.object("job")
    wait_for((backing(plan) / "staging" / plan.object("job") / "work" / "rows.jsonl").exists)
    reader = north.start(["tail", "-f", str(staging / "work" / "rows.jsonl")])
    said, _ = process.communicate(timeout=PATIENCE_S)
    reader.kill()
    reader.wait()  # what it started on the node ends with the node
    assert process.returncode == 0, said
    assert published(north, plan, "job")
