"""How uv is started: with pip's own settings, from its files and variables, or not at all."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentc.runtime.software import installer
from agentc.runtime.software.installer import choose_installer
from agentc.runtime.software.job_software import SoftwareError
from agentc.runtime.software.lock_text import read_lock_text
from agentc.runtime.software.pip_settings import pip_settings, uv_options

LOCK = read_lock_text("a==1 --hash=sha256:" + "0" * 64 + "\n")


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home without settings of pip or uv."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "XDG_CONFIG"))]:
        monkeypatch.delenv(name)
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_settings_are_read_as_pip_reads_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home / "site/pip/pip.conf", "[global]\nindex-url = https://a\ntimeout = 9\nretries=1\n")
    write(home / ".pip/pip.conf", "[global]\ntimeout = 8\n[install]\nfind-links = /a\n  /b\n")
    write(home / ".config/pip/pip.conf", "[install]\nretries = 7\n[list]\nformat = json\n")
    own = write(home / "own.conf", "[global]\nindex_url = https://own\ntrusted-host = a b\n")
    no_file = {"PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "https://x"}
    for further in ({}, {"PIP_TIMEOUT": "6"}, {"PIP_CONFIG_FILE": str(own)}, no_file):
        environ = {**os.environ, **further}
        words = [sys.executable, "-m", "pip", "config", "list"]
        lines = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)
        listed = [line.partition("=") for line in lines.stdout.splitlines()]
        theirs: dict[str, str] = {}
        for section in ("global.", "install.", ":env:."):
            theirs |= {
                name.removeprefix(section): ast.literal_eval(value)
                for name, _, value in listed
                if name.startswith(section)
            }
        theirs.pop("config-file", None)
        ours = pip_settings(environ)
        ours.pop("config-file", None)
        assert ours == theirs, further
        assert ours


def test_pips_settings_become_options_and_variables_of_uv(home: Path) -> None:
    write(
        home / ".config/pip/pip.conf",
        "[global]\nindex-url = https://user:pass@example.org/simple\nextra-index-url = https://b\n"
        "find-links = /wheels /more\ntrusted-host = example.org\nproxy = proxy.example.org:3128\n"
        "cert = /etc/own.pem\nclient-cert = /etc/me.pem\ntimeout = 60\nno-cache-dir = true\n"
        "[install]\nno-binary = a,b\nno-index = no\n",
    )
    found = choose_installer("/env/bin/python", LOCK)
    words = " ".join(found.install)
    for part in (
        "--default-index https://user:pass@example.org/simple", "--index https://b",
        "--find-links /wheels --find-links /more", "--allow-insecure-host example.org",
        "--no-binary a --no-binary b", "--python /env/bin/python", "--no-config",
    ):  # fmt: skip
        assert part in words
    assert "--no-index" not in words
    given = found.variables
    assert (given["SSL_CERT_FILE"], given["SSL_CLIENT_CERT"]) == ("/etc/own.pem", "/etc/me.pem")
    assert (given["UV_HTTP_TIMEOUT"], given["UV_NO_CACHE"]) == ("60", "1")
    assert given["HTTPS_PROXY"] == given["http_proxy"] == "http://proxy.example.org:3128"


@pytest.mark.parametrize(
    ("name", "value", "words", "variables"),
    [
        ("PIP_NO_INDEX", "1", ["--no-index"], {}),
        ("PIP_NO_BUILD_ISOLATION", "0", ["--no-build-isolation"], {}),
        ("PIP_NO_BUILD_ISOLATION", "1", [], {}),
        ("PIP_ONLY_BINARY", ":all:", ["--only-binary", ":all:"], {}),
        ("PIP_KEYRING_PROVIDER", "import", ["--keyring-provider", "subprocess"], {}),
        ("PIP_CACHE_DIR", "/big", [], {"UV_CACHE_DIR": "/big/uv"}),
        ("REQUESTS_CA_BUNDLE", "/etc/site.pem", [], {"SSL_CERT_FILE": "/etc/site.pem"}),
        ("PIP_NO_DEPS", "1", [], {}),
    ],
)
def test_a_variable_of_pips_does_the_same(
    name: str, value: str, words: list[str], variables: dict[str, str]
) -> None:
    environ = {**os.environ, "PIP_CONFIG_FILE": os.devnull, name: value}
    found = uv_options(pip_settings(environ), environ)
    assert (list(found.words[1:]), found.variables) == (words, variables)


def test_uvs_own_file_counts_and_that_of_the_working_folder_does_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home / "spec/uv.toml", "no-index = true\n")
    monkeypatch.chdir(home / "spec")
    assert uv_options({}, os.environ).words == ("--no-config",)
    own = write(home / ".config/uv/uv.toml", 'index-url = "https://example.org/simple"\n')
    assert uv_options({}, os.environ).words == ("--config-file", str(own))


@pytest.mark.parametrize("name", ["PIP_GLOBAL_OPTION", "PIP_REQUIREMENT", "PIP_PLATFORM"])
def test_a_setting_without_a_counterpart_is_refused_by_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "some")
    with pytest.raises(SoftwareError) as caught:
        choose_installer("python", LOCK)
    first, second = str(caught.value).splitlines()
    assert f"`{name[4:].lower().replace('_', '-')}` (some)" in first
    assert "PIP_CONFIG_FILE" in second


def test_a_file_that_cannot_be_read_is_named(home: Path) -> None:
    file = write(home / ".config/pip/pip.conf", "index-url = https://example.org\n")
    with pytest.raises(SoftwareError, match=f"pip's configuration {file} cannot be read"):
        choose_installer("python", LOCK)


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
def test_constraints_have_to_allow_the_pins(
    constraints: str, allowed: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(home / "constraints.txt", constraints)
    monkeypatch.setenv("PIP_CONSTRAINT", str(file))
    if allowed:
        # Beside hashes uv takes none but for what builds a package.
        words = choose_installer("python", LOCK).install
        assert words[-2:] == ("--build-constraints", str(file))
        return
    with pytest.raises(SoftwareError, match="PIP_CONSTRAINT"):
        choose_installer("python", LOCK)


def test_a_machine_without_uv_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer, "find_uv", lambda: None)
    with pytest.raises(SoftwareError, match="-m pip install uv"):
        choose_installer("python", LOCK)
    monkeypatch.setattr(installer, "find_uv", lambda: "/bin/true")
    with pytest.raises(SoftwareError, match=r"/bin/true is not a uv of version 0\.5 or newer"):
        choose_installer("python", LOCK)
