"""pip's configuration and variables, read as pip reads them, and the same settings for uv.

Sites name their package index, proxy and certificates for pip, in `pip.conf` or in `PIP_*`. uv
reads neither, so each setting that matters here becomes an option or a variable of uv, or is
refused.
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from agentc.runtime.software.job_software import SoftwareError

_LISTS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
    "no-binary": "--no-binary",
    "only-binary": "--only-binary",
    "config-settings": "--config-setting",
    "build-constraint": "--build-constraints",
}
"""Options whose values are words; pip splits them at blanks, the last four at commas too."""
_VARIABLES = {
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "retries": "UV_HTTP_RETRIES",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
_REFUSED = frozenset(
    ("abi", "build-option", "dry-run", "editable", "global-option", "group", "implementation",
     "install-option", "platform", "python", "python-version", "requirement")
)  # fmt: skip
"""They change what is installed, and uv has nothing like them. All others have no effect on pins
with hashes that are installed without dependencies."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_BUNDLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_FALSE = ("0", "false", "no", "off", "n", "f")


class UvOptions(NamedTuple):
    """What uv is started with."""

    words: tuple[str, ...]
    variables: Mapping[str, str]


def pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Settings of `pip install` by name, from its files and from `PIP_*`. Raises SoftwareError for
    a file that cannot be read."""
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for file in _files(environ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(file)
        except (configparser.Error, UnicodeDecodeError) as error:
            raise SoftwareError(f"pip's configuration {file} cannot be read: {error}") from None
        for section, values in sections.items():
            if parser.has_section(section):
                values |= {_normalised(name): value for name, value in parser.items(section)}
    variables = {
        _normalised(name.removeprefix("PIP_")): value
        for name, value in environ.items()
        if name.startswith("PIP_")
    }
    # As pip has it: a variable before what is for `install`, that before what is for all commands.
    settings = {**sections["global"], **sections["install"], **variables}
    return {name: value for name, value in settings.items() if value}


def is_true(value: str) -> bool:
    """Whether a setting that is on or off is on."""
    return value.lower() not in _FALSE


def uv_options(settings: Mapping[str, str], environ: Mapping[str, str]) -> UvOptions:
    """The same settings for uv, but for constraints. Raises SoftwareError for one without a
    counterpart."""
    words: list[str] = []
    variables = {}
    for name, value in settings.items():
        if name in _REFUSED:
            raise SoftwareError(
                f"pip's setting `{name}` ({value}) has no counterpart in uv, which installs "
                "software\nhelp: unset it for agentc, or let PIP_CONFIG_FILE name a file without it"
            )
        if name in _LISTS:
            parts = value.replace(",", " ") if name.endswith("-binary") else value
            for part in parts.split():
                words += [_LISTS[name], part]
        elif name in _VARIABLES:
            variables[_VARIABLES[name]] = value
        elif name == "no-index" and is_true(value):
            words.append("--no-index")
        elif name == "no-build-isolation" and not is_true(value):  # pip reads it the other way
            words.append("--no-build-isolation")
        elif name == "proxy":
            address = value if "://" in value else f"http://{value}"
            variables |= dict.fromkeys(_PROXIES, address)
        elif name == "keyring-provider" and value in ("import", "subprocess"):
            words += ["--keyring-provider", "subprocess"]
        elif name == "no-cache-dir":
            variables["UV_NO_CACHE"] = "1"
        elif name == "cache-dir" and "UV_CACHE_DIR" not in environ:
            variables["UV_CACHE_DIR"] = str(Path(value).expanduser() / "uv")
    bundle = next((environ[name] for name in _BUNDLES if environ.get(name)), None)
    if bundle is not None:
        variables.setdefault("SSL_CERT_FILE", bundle)
    return UvOptions((*_uv_file(environ), *words), variables)


def has_uv_configuration(environ: Mapping[str, str]) -> bool:
    """Whether uv has settings of its own, which may name an index."""
    own = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_NO_INDEX", "UV_OFFLINE")
    return any(environ.get(name) for name in own) or "--config-file" in _uv_file(environ)


def _files(environ: Mapping[str, str]) -> Iterator[str]:
    """pip's configuration files, those that count more later."""
    own = environ.get("PIP_CONFIG_FILE")
    if own == os.devnull:
        return
    home = environ.get("HOME") or str(Path.home())
    for folder in _folders(environ):
        yield f"{folder}/pip/pip.conf"
    yield "/etc/pip.conf"
    if not own or not Path(own).exists():
        yield f"{home}/.pip/pip.conf"
        yield f"{environ.get('XDG_CONFIG_HOME') or home + '/.config'}/pip/pip.conf"
    yield f"{sys.prefix}/pip.conf"
    if own:
        yield own


def _uv_file(environ: Mapping[str, str]) -> tuple[str, ...]:
    """uv's own configuration of this user or site; never that of the folder where it is started,
    which comes with a spec."""
    home = environ.get("HOME") or str(Path.home())
    folders = [environ.get("XDG_CONFIG_HOME") or home + "/.config", *_folders(environ), "/etc"]
    files = [environ.get("UV_CONFIG_FILE"), *(f"{folder}/uv/uv.toml" for folder in folders)]
    for file in files:
        if file and Path(file).is_file():
            return ("--config-file", file)
    return ("--no-config",)


def _folders(environ: Mapping[str, str]) -> list[str]:
    return [part for part in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if part]


def _normalised(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")
