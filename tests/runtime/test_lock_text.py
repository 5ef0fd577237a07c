"""Lines of a lock that begin with `# agentc:`."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.runtime.software.lock_text import (
    LockTextError,
    lock_digest,
    meets,
    read_lock_text,
    requirements,
)


def test_lock_without_directives_is_one_step() -> None:
    lock = read_lock_text("# made on a laptop\na==1.0\nb[extra]==2.0 ; sys_platform == 'linux'\n")
    assert [step.text for step in lock.steps] == [
        "# made on a laptop\na==1.0\nb[extra]==2.0 ; sys_platform == 'linux'\n"
    ]
    assert lock.python is None
    assert set(lock.pins()) == {"a", "b"}


def test_steps_carry_their_own_options_and_pips_carry_over() -> None:
    lock = read_lock_text(
        "--extra-index-url https://example.org/cpu\n"
        "# agentc: python >=3.8,<3.11\n"
        "# agentc: without Flash_Attn, ray\n"
        "torch==2.13.0 \\\n    --hash=sha256:00\n"
        "# agentc: then --no-build-isolation DS_BUILD_OPS=0 WHY='two words'\n"
        "deepspeed==0.19.6\n"
        "# agentc: then --ignore-requires-python\n"
        "xtuner==0.1.23\n"
    )
    first, second, third = lock.steps
    assert first.text == (
        "--extra-index-url https://example.org/cpu\ntorch==2.13.0 \\\n    --hash=sha256:00\n"
    )
    assert second.text == "--extra-index-url https://example.org/cpu\ndeepspeed==0.19.6\n"
    assert not second.build_isolation
    assert not second.ignore_requires_python
    assert second.variables == {"DS_BUILD_OPS": "0", "WHY": "two words"}
    assert third.build_isolation
    assert third.ignore_requires_python
    assert third.variables == {}
    assert lock.python == ">=3.8,<3.11"
    assert lock.without == {"flash-attn", "ray"}
    assert not lock.partial


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "# agentc: parital",
            "known are: container, if-asked, partial, python, then, unverified",
        ),
        ("# agentc: python three", "expected a Python version such as 3.10"),
        ("# agentc: python 3.10.4", "expected a Python version such as 3.10"),
        ("# agentc: then --upgrade", "`then` takes --no-build-isolation"),
        ("# agentc: then NAME='unclosed", "No closing quotation"),
        ("# agentc: python 3.10\n# agentc: python 3.11", "line 3, .*demanded twice"),
        ("# agentc: if-asked\n# agentc: then", "line 3, .*nothing but requirements may follow"),
    ],
)
def test_directive_that_makes_no_sense_is_refused_by_line(line: str, said: str) -> None:
    with pytest.raises(LockTextError, match=said):
        read_lock_text(f"a==1\n{line}\n")


@pytest.mark.parametrize(
    ("demand", "met"),
    [
        ("3.10", [(3, 10)]),
        (">=3.8,<3.11", [(3, 8), (3, 9), (3, 10)]),
        (">3.11, !=3.12", [(3, 13)]),
    ],
)
def test_demands(demand: str, met: list[tuple[int, int]]) -> None:
    assert [(3, minor) for minor in range(8, 14) if meets(demand, (3, minor))] == met


def test_every_lock_of_an_installed_backend_can_be_read() -> None:
    for backend in load_backends():
        lock = read_lock_text(backend.software.text)
        assert all(step.text.strip() for step in lock.steps), backend.id


def test_shipped_locks_pin_every_line() -> None:
    import agentc_backends.software as software

    for file in Path(software.__file__).parent.glob("*.lock"):
        lock = read_lock_text(file.read_text())
        wanted = [line for step in lock.steps for line in requirements(step.text)]
        assert len(lock.pins()) == len(wanted), file.name
        assert lock.unhashed == (), file.name
        assert not lock.unverified, file.name


HASH = "--hash=sha256:" + "a" * 64
OTHER = "--hash=sha256:" + "b" * 64
PLAIN = "# agentc: python 3.12\n--no-index\na==1.0\nb[x]==2.0 ; sys_platform == 'linux'\n"
HASHED = (
    f"# agentc: python 3.12\n--no-index\na==1.0 \\\n    {HASH} \\\n    {OTHER}\n"
    f"b[x]==2.0 ; sys_platform == 'linux' {HASH}\n"
)


def test_hashes_of_versions_leave_the_digest_alone() -> None:
    assert lock_digest(HASHED) == lock_digest(PLAIN)
    assert lock_digest(PLAIN) == hashlib.sha256(PLAIN.encode()).hexdigest()
    assert lock_digest(HASHED.replace("2.0", "2.1")) != lock_digest(PLAIN)
    assert lock_digest(HASHED + f"# agentc: if-asked\nc==1 {HASH}\n") == lock_digest(PLAIN)


def test_the_hash_of_an_address_counts() -> None:
    one = lock_digest(f"a @ file:///a.whl {HASH}\n")
    assert one != lock_digest(f"a @ file:///a.whl {OTHER}\n")
    assert one != lock_digest("a @ file:///a.whl\n")


def test_what_lacks_a_hash_is_named_but_for_what_is_let_through() -> None:
    assert read_lock_text(PLAIN).unhashed == ("a", "b")
    assert read_lock_text(HASHED).unhashed == ()
    assert read_lock_text(HASHED).pins()["b"] == "b[x]==2.0 ; sys_platform == 'linux'"
    assert read_lock_text(PLAIN + "# agentc: unverified A, b\n").unhashed == ()
    assert read_lock_text(f"{HASHED}# agentc: if-asked\nc==1\n").unhashed == ("c",)
    assert read_lock_text("a==1.0 --hash=md5:00\n").unhashed == ("a",)
    assert read_lock_text("a==1.0 --hash=sha256:00\n").unhashed == ("a",)
    assert read_lock_text("a==1.0\n" + f"# {HASH}\n").unhashed == ("a",)
