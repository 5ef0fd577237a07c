"""A canary in the environment appears in no file, log, message, manifest or process list.

The program under test prints it whole, in parts, escaped and encoded, writes it to its own logs and
reports it as a fact. What is searched is everything that was written, byte by byte.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentc.runtime.machine.output_filters import Redactor

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tiny_plan import TinyPlan

WORD = "canary-" + "Q7f3/a9+c" + "-" + "Zx82\"kk'Ü"
KEY = "\n".join(["-----BEGIN CANARY KEY-----", "Yh7" * 21, "Lq9" * 21, "-----END CANARY KEY-----"])


def forms(secret: str) -> list[bytes]:
    """What must not be found: the value, and what a reader could turn back into it."""
    raw = secret.encode()
    found = [
        raw,
        raw.hex().encode(),
        json.dumps(secret)[1:-1].encode(),
        json.dumps(secret, ensure_ascii=False)[1:-1].encode(),
        repr(secret)[1:-1].encode(),
        urllib.parse.quote(secret, safe="").encode(),
        raw[: len(raw) - 1],
        *(line.encode() for line in secret.splitlines() if len(line) > 8),
    ]
    for before in (b"", b"u:", b"user:", b"any:"):
        encoded = base64.b64encode(before + raw + b":x")
        found.append(encoded[8:-8])
    return found


def assert_nowhere(secret: str, *folders: Path) -> None:
    written = forms(secret)
    for path in (path for folder in folders for path in folder.rglob("*")):
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        for form in written:
            assert form not in str(path).encode(), path
            assert form not in content, (path, form)


@contextmanager
def command_lines() -> Iterator[set[bytes]]:
    """Collects the command line of every process of this machine while the block runs."""
    seen: set[bytes] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            for folder in Path("/proc").iterdir():
                if folder.name.isdigit():
                    try:
                        seen.add((folder / "cmdline").read_bytes())
                    except OSError:
                        continue
            over.wait(0.1)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


@pytest.fixture
def plan(tmp_path: Path) -> TinyPlan:
    return TinyPlan(tmp_path)


@pytest.fixture(autouse=True)
def _own_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTC_SOFTWARE", str(tmp_path / "software"))


def add(plan: TinyPlan, name: str, **config: object) -> None:
    plan.job(name, program="canary.py", **config)["secrets"] = {"API_KEY": "MY_KEY"}


@pytest.mark.parametrize("secret", [WORD, KEY], ids=["word", "key of several lines"])
@pytest.mark.parametrize("status", [0, 1], ids=["published", "failed"])
def test_nowhere(secret: str, status: int, plan: TinyPlan) -> None:
    add(plan, "speaks", exit=status, hold=0.2)
    with command_lines() as seen:
        done = plan.run("speaks", MY_KEY=secret)
    assert done.returncode == status, done.stderr
    assert_nowhere(secret, plan.store, plan.folder)
    for form in forms(secret):
        assert form not in (done.stdout + done.stderr).encode()
        assert not [line for line in seen if form in line]
    assert any(b"canary.py" in line for line in seen), "the program was not seen running"
    where = plan.store / ("staging" if status else "objects") / plan.object("speaks") / "logs"
    log = (where / "log.txt").read_text(encoding="utf-8")
    assert "whole: [redacted]\n" in log
    assert "twice: [redacted][redacted]\n" in log
    assert "in halves: [redacted]\n" in log
    assert "[redacted]" in (where / "steps.jsonl").read_text()


@pytest.mark.parametrize("leak", ["data", "name"])
def test_an_artifact_that_holds_it_is_not_published(leak: str, plan: TinyPlan) -> None:
    add(plan, "leaks", leak=leak)
    done = plan.run("leaks", MY_KEY="canary-7f3a9c-and-more")
    assert done.returncode == 1
    assert "wrote the value of a secret into data/" in done.stderr
    assert "canary-7f3a9c" not in done.stderr
    assert not (plan.store / "objects" / plan.object("leaks")).exists()


@pytest.mark.parametrize("coded", [False, True], ids=["plain", "base64"])
def test_staged_work_forgets_it_and_the_next_run_goes_on(
    coded: bool, plan: TinyPlan, tmp_path: Path
) -> None:
    calm = tmp_path / "calm"
    add(plan, "leaks", leak="journal", calm=str(calm), coded=coded)
    secret = "canary-7f3a9c-and-more"
    done = plan.run("leaks", MY_KEY=secret)
    assert done.returncode == 1
    assert "Run again: the rest of the work is kept" in done.stderr
    assert_nowhere(secret, plan.store)
    work = plan.staging("leaks") / "work"
    assert [json.loads(line)["id"] for line in (work / "rows.jsonl").open()] == ["kept#0"]
    assert not (work / "state.bin").exists()
    assert {place.stat().st_mode & 0o777 for place in (work, work.parent / "data")} == {0o700}
    calm.touch()
    done = plan.run("leaks", MY_KEY=secret)
    assert done.returncode == 0, done.stderr
    rows = (plan.data("leaks") / "trajectories.jsonl").read_text().splitlines()
    assert [json.loads(row)["id"] for row in rows] == ["kept#0", "t#0"]
    assert plan.data("leaks").stat().st_mode & 0o055 == 0o055


def test_what_a_killed_attempt_left_of_it_goes_before_the_next(
    plan: TinyPlan, tmp_path: Path
) -> None:
    calm = tmp_path / "calm"
    calm.touch()
    add(plan, "leaks", leak="journal", calm=str(calm), coded=False)
    secret = "canary-7f3a9c-and-more"
    work = plan.staging("leaks") / "work"
    work.mkdir(parents=True)
    (work / "rows.jsonl").write_text(json.dumps({"id": "t#0", "said": secret}) + "\n")
    done = plan.run("leaks", MY_KEY=secret)
    assert "canary" not in (plan.data("leaks") / "trajectories.jsonl").read_text(), done.stderr


def test_other_jobs_do_not_get_it(plan: TinyPlan) -> None:
    add(plan, "speaks")
    plan.job("other", rows=1, echo=["API_KEY", "MY_KEY"])
    assert plan.run("other", MY_KEY=WORD).returncode == 0
    log = plan.store / "objects" / plan.object("other") / "logs" / "log.txt"
    assert "API_KEY = None\nMY_KEY = None" in log.read_text()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_parts_of_any_size(size: int) -> None:
    redactor = Redactor(["abcdefgh", "abcd-longer-secret", "cdefghij"])
    text = b"x abcdefgh abcabcd-longer-secret abcd-longer abcdefg cdefghij\nabc" * 3
    shown, held = b"", b""
    for start in range(0, len(text), size):
        ready, held = redactor.split(held + text[start : start + size])
        shown += ready
    assert shown + held == redactor.clean(text)
    assert b"abcdefgh" not in shown
    assert b"longer-secret" not in shown


def test_text_that_is_no_secret_comes_at_once() -> None:
    redactor = Redactor(["canary-7f3a9c"])
    assert redactor.split(b"step 1 of 20\n") == (b"step 1 of 20\n", b"")
    assert redactor.split(b"can") == (b"", b"can")
    assert redactor.split(b"canoe") == (b"canoe", b"")


def test_short_values_are_left_alone() -> None:
    assert Redactor(["1", "abc"]).clean(b"step 1 of abc") == b"step 1 of abc"


@pytest.mark.parametrize("name", ["NVIDIA_PHRASE", "SLURM_JWT", "NVIDIA_API_KEY"])
def test_other_jobs_do_not_inherit_it_under_a_name_that_they_may(plan: TinyPlan, name: str) -> None:
    """The first is known by the plan alone, whose jobs run in other processes; no plan names the
    others, which say themselves what they are."""
    if name == "NVIDIA_PHRASE":
        add(plan, "speaks")
        plan.jobs[0]["secrets"] = {"API_KEY": name}
    plan.job("other", rows=1, echo=[name, "NVIDIA_PLAIN"])
    assert plan.run("other", **{name: WORD, "NVIDIA_PLAIN": "calm"}).returncode == 0
    log = plan.store / "objects" / plan.object("other") / "logs" / "log.txt"
    assert f"{name} = None\nNVIDIA_PLAIN = calm" in log.read_text()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_key_of_several_lines_is_purged_with_its_short_ones(tmp_path: Path, end: str) -> None:
    """The last line of a key may be a few letters, which count in its company alone."""
    key = "-----BEGIN KEY-----\n" + "Yh7" * 21 + "\nQx8=\n-----END KEY-----"
    journal = tmp_path / "rows.jsonl"
    rows = ['{"a": "before"}', *key.split("\n"), '{"a": "Qx8="}', json.dumps({"key": key})]
    journal.write_bytes(end.join([*rows, '{"a": "after"}', ""]).encode())
    assert Redactor([key]).purge(tmp_path) == "rows.jsonl"
    assert journal.read_text().split() == [
        '{"a":',
        '"before"}',
        '{"a":',
        '"Qx8="}',
        '{"a":',
        '"after"}',
    ]
