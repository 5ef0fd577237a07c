"""The user's configuration: `~/.config/agentc/config.toml`, and a site's in `/etc/xdg/agentc`. It
says where things of this machine are; no result depends on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import tomllib

from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.exit_codes import CommandError

_NAME = "agentc/config.toml"
_MODEL_FOLDERS = "model_folders"
_KEYS = (_MODEL_FOLDERS,)


class ConfigError(CommandError):
    """A configuration that cannot be used."""


def model_folders(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Folders of models that every spec may read, and name models in by their paths below them.
    Raises ConfigError."""
    return tuple(
        Path(text).expanduser()
        for file in config_files(environment)
        for text in _read(file).get(_MODEL_FOLDERS, [])
    )


def config_files(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The configuration files that there are, the user's own first."""
    home = environment.get("HOME")
    users = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    folders = [users, *(environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)]
    files = (Path(folder) / _NAME for folder in folders if folder)
    return tuple(file for file in files if os.path.lexists(file))


def _read(file: Path) -> dict[str, list[str]]:
    try:
        written = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigError(f"cannot read the configuration {file}: {reason}") from None
    except ValueError as error:
        raise ConfigError(f"the configuration {file} is not TOML: {error}") from None
    problem = next(_problems(written), None)
    if problem is not None:
        raise ConfigError(f"the configuration {file}: {problem}")
    return {key: list(value) for key, value in written.items()}


def _problems(written: Mapping[str, object]) -> Iterator[str]:
    for key, value in written.items():
        if key not in _KEYS:
            yield f"unknown key `{key}`; {did_you_mean(key, _KEYS) or f'keys: {listed(_KEYS)}'}"
        elif not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            yield f'`{key}` takes a list of folders, such as ["/scratch/models"]'
        else:
            for text in value:
                if not text.startswith(("/", "~")):
                    yield f"`{key}` takes absolute paths, and `{text}` is relative"
