"""Which box is chosen, and that without one there is a refusal with a remedy.

What a machine lacks is really withheld: a filter of system calls refuses it to the process that
asks, as engines of containers do.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sandbox.conftest import Player

from agentc.preflight.machine import check_sandbox
from agentc.program.seccomp import UnknownMachineError, filter_program
from agentc.runtime.sandbox.boxes import CodeBox, NoInterpreterError, boxed_interpreter
from agentc.runtime.sandbox.probe import NoBoxError, choose_box, probe_kind

bubblewrap_here = pytest.mark.skipif(
    probe_kind("bubblewrap").box is None, reason="no bubblewrap here"
)
landlock_here = pytest.mark.skipif(probe_kind("landlock").box is None, reason="no Landlock here")


@bubblewrap_here
def test_bubblewrap_is_the_first_choice() -> None:
    assert choose_box().kind == "bubblewrap"
    assert choose_box().facts()["version"] == choose_box("bubblewrap").version


@bubblewrap_here
@landlock_here
def test_without_namespaces_it_is_landlock(play: Player) -> None:
    told = play("nobody", "probe_without", "namespaces")
    assert told["chosen"] == "landlock"
    assert "did not start: bwrap: " in told["reasons"]["bubblewrap"]
    assert told["reasons"]["landlock"] == ""


@bubblewrap_here
def test_without_landlock_it_is_bubblewrap(play: Player) -> None:
    told = play("nobody", "probe_without", "landlock")
    assert told["chosen"] == "bubblewrap"
    assert "was started without it" in told["reasons"]["landlock"]


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_without_either_it_is_refused_and_says_how_to_have_one(play: Player, user: str) -> None:
    told = play(user, "probe_without", "namespaces", "landlock")
    assert told["chosen"] == ""
    assert "without one none of it is run" in told["refused"]
    remedies = ("user.max_user_namespaces", "CONFIG_SECURITY_LANDLOCK")
    if "is not installed" in told["refused"]:
        remedies = ("apt install bubblewrap", "CONFIG_SECURITY_LANDLOCK")
    assert all(remedy in told["refused"] for remedy in remedies)


def test_a_root_who_may_not_become_nobody_is_told_to_be_another(play: Player) -> None:
    told = play("root", "probe_without", "users")
    assert told["chosen"] == ""
    assert "setpriv: " in told["refused"]
    assert "run it as a user who is not root" in told["refused"]


def test_without_filters_there_is_no_box(play: Player) -> None:
    told = play("nobody", "probe_without", "seccomp")
    assert told["chosen"] == ""
    reasons = told["reasons"].values()
    assert any("PR_SET_SECCOMP" in reason for reason in reasons)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is all of PATH, open to everybody, with setpriv in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        setpriv = shutil.which("setpriv")
        if setpriv:
            (folder / "setpriv").symlink_to(setpriv)
        monkeypatch.setenv("PATH", name)
        yield folder


def test_where_bubblewrap_is_not_installed_it_says_how_to(programs: Path) -> None:
    found = probe_kind("bubblewrap")
    assert found.box is None
    assert found.reason == "bwrap is not installed"
    assert "apt install bubblewrap" in found.remedy
    finding = check_sandbox("bubblewrap")
    assert finding.verdict == "problem"
    assert "apt install bubblewrap" in str(finding.fix)
    with pytest.raises(NoBoxError, match="bwrap is not installed"):
        choose_box("bubblewrap")


@bubblewrap_here
def test_an_old_bubblewrap_is_not_asked_for_what_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch, programs: Path
) -> None:
    real = shutil.which("bwrap", path=os.defpath + ":/usr/local/bin")
    old = programs / "bwrap"
    old.write_text(
        "#!/bin/sh\n"
        '[ "$1" = --version ] && echo bubblewrap 0.4.0 && exit\n'
        'for word in "$@"; do [ "$word" = --disable-userns ] && echo unknown >&2 && exit 1; done\n'
        f'exec {real} "$@"\n'
    )
    old.chmod(0o755)
    found = probe_kind("bubblewrap").box
    assert isinstance(found, CodeBox)
    assert found.version == "0.4.0"


def test_an_interpreter_that_a_box_may_not_read_is_named(tmp_path: Path) -> None:
    hidden = tmp_path / "packages"
    hidden.mkdir()
    hidden.chmod(0)
    with pytest.raises(NoInterpreterError, match=f"may not read {hidden}"):
        boxed_interpreter(packages=(str(hidden),))


def test_a_processor_without_a_table_is_refused() -> None:
    with pytest.raises(UnknownMachineError, match="riscv64"):
        filter_program("riscv64")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_jumps_of_the_filter_stay_inside_and_every_path_returns(machine: str) -> None:
    program = filter_program(machine)
    steps = [program[start : start + 8] for start in range(0, len(program), 8)]
    assert len(steps) < 4096, "the kernel's most"
    for place, (code, _, then, otherwise, *_) in enumerate(steps):
        if code in (0x15, 0x35):
            assert place + 1 + max(then, otherwise) < len(steps)
    assert steps[-1][0] == 0x06


def test_preflight_says_which_box(box: CodeBox) -> None:
    finding = check_sandbox()
    assert (finding.check, finding.verdict) == ("sandbox", "ok")
    assert box.kind in finding.message
    assert check_sandbox(elsewhere=True).verdict == "unknown"
