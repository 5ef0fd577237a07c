"""Which program installs, and that uv is told what pip's own settings say."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.runtime.software.installer import INSTALLER_VARIABLE, choose_uv, find_uv
from agentc.runtime.software.lock_text import read_lock_text

LOCK = read_lock_text("a==1 --hash=sha256:" + "0" * 64 + "\n")
needs_uv = pytest.mark.skipif(find_uv() is None, reason="needs uv (`pip install uv`)")


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv(INSTALLER_VARIABLE, raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)


@needs_uv
def test_uv_is_told_pips_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:pass@example.org/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels /more")
    monkeypatch.setenv("PIP_CERT", "/etc/own.pem")
    found = choose_uv("/env/bin/python", LOCK)
    assert found is not None
    words = " ".join(found.install)
    assert "--default-index https://user:pass@example.org/simple" in words
    assert "--find-links /wheels --find-links /more" in words
    assert "--python /env/bin/python --no-config" in words
    assert found.variables["SSL_CERT_FILE"] == "/etc/own.pem"


@needs_uv
@pytest.mark.parametrize(
    ("name", "value"),
    [
        (INSTALLER_VARIABLE, "pip"),
        ("PIP_CONSTRAINT", "/absent/constraints.txt"),
        ("PIP_NO_BINARY", ":all:"),
        ("PIP_NO_DEPS", "1"),
    ],
)
def test_what_uv_cannot_be_told_is_left_to_pip(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choose_uv("python", LOCK) is not None
    monkeypatch.setenv(name, value)
    assert choose_uv("python", LOCK) is None


@needs_uv
@pytest.mark.parametrize(
    ("constraints", "allowed"),
    [
        ("a<=1.4 # newest\n\nb==7\n", True),
        ("A>=1,<2\n", True),
        ("a<1\n", False),
        ("a @ https://example.org/a.whl\n", False),
        ("-c more.txt\n", False),
    ],
)
def test_constraints_that_the_pins_fulfil_are_no_reason_against_uv(
    constraints: str, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "constraints.txt"
    file.write_text(constraints)
    monkeypatch.setenv("PIP_CONSTRAINT", str(file))
    found = choose_uv("python", LOCK)
    assert (found is not None) == allowed
    # Beside hashes uv takes none but for what builds a package.
    assert found is None or found.install[-2:] == ("--build-constraints", str(file))


@needs_uv
def test_a_lock_that_overrules_a_packages_python_is_left_to_pip() -> None:
    lock = read_lock_text(
        f"# agentc: then --ignore-requires-python\na==1 --hash=sha256:{'0' * 64}\n"
    )
    assert choose_uv("python", lock) is None
