"""Snakemake profiles: which one a name means, what the driver must know of it, and what it says
about placement.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from agentc import resources
from agentc.diagnostics.suggest import did_you_mean
from agentc.exit_codes import CommandError
from agentc.placement.profile_keys import key_problems, value_problems
from agentc.placement.profile_resources import resource_problems
from agentc.resources import install_command

PROFILE_VARIABLE = "SNAKEMAKE_PROFILE"
SLURM = "slurm"
_FILE = re.compile(r"(?:profile|config)(?:\.v(\d+)\+)?\.yaml")
_OLDEST_SLURM_PLUGIN = (2, 7, 1)
"""Earlier ones start a job with several GPUs once for each GPU."""


class ProfileError(CommandError):
    """No such profile, or one that cannot be used here; the message says what would mend it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A Snakemake profile: `file` is its YAML file, `shipped` whether it came with agentc."""

    name: str
    file: Path
    shipped: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def executor(self) -> str:
        """Who runs jobs: `local`, `slurm`, `cluster-generic`, ..."""
        return str(self.settings.get("executor") or "local")

    @property
    def queued(self) -> bool:
        """Whether jobs go to somebody else's queue."""
        return self.executor not in ("local", "dryrun", "touch")


def find_profile(typed: str | None, environ: Mapping[str, str]) -> Profile | None:
    """The profile that was typed, else the one that $SNAKEMAKE_PROFILE names, else None.

    A folder or file comes first, then the user's profile of that name, the site's, and one that
    ships with agentc. Raises ProfileError.
    """
    name = typed or environ.get(PROFILE_VARIABLE)
    if not name or name == "none":
        return None
    for path, shipped in _places(name, environ):
        file = _profile_file(path)
        if file is not None:
            settings = _read(file)
            return Profile(name=name, file=file, shipped=shipped, settings=settings)
        if path.is_dir() and (others := sorted(p.name for p in path.glob("*.y*ml"))):
            raise ProfileError(
                f"the profile {path} has no config.yaml, which is the name that Snakemake reads;"
                f" there is {', '.join(others)}"
            )
    known = sorted(_names(environ))
    hint = did_you_mean(name, known) or f"known by name: {', '.join(known)}"
    raise ProfileError(
        f"no Snakemake profile `{name}`: neither a folder with a config.yaml nor a name; {hint}"
    )


def require_executor(profile: Profile) -> None:
    """Raise ProfileError where Snakemake could not run jobs by this profile."""
    executor = profile.executor
    if not profile.queued:
        slurm = re.search(r"\bslurm_\w+", str(profile.settings.get("default-resources")))
        if slurm and "executor" not in profile.settings:
            raise ProfileError(
                f"the profile {profile.file} has `{slurm.group()}` and no executor, so that jobs"
                " would run on this machine; write `executor: slurm`"
            )
        return
    package = f"snakemake-executor-plugin-{executor}"
    if importlib.util.find_spec(package.replace("-", "_")) is None:
        how = install_command("slurm") if executor == SLURM else f"pip install {package}"
        raise ProfileError(
            f"the profile {profile.file} requests `executor: {executor}`, and {package} is not"
            f" installed beside agentc; `{how}`"
        )
    if executor != SLURM:
        return
    version = importlib.metadata.version(package)
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if numbers < _OLDEST_SLURM_PLUGIN:
        oldest = ".".join(map(str, _OLDEST_SLURM_PLUGIN))
        raise ProfileError(
            f"{package} {version} starts a job with several GPUs once for each GPU; {oldest} or"
            f" later is needed: `{install_command('slurm')}` brings it"
        )
    if shutil.which("sbatch") is None:
        raise ProfileError(
            f"the profile {profile.file} submits to SLURM, and there is no `sbatch` here; run"
            " this where jobs can be submitted (a login node)"
        )


def _places(name: str, environ: Mapping[str, str]) -> Iterator[tuple[Path, bool]]:
    yield Path(name), False
    if "/" not in name:
        for folder in profile_folders(environ):
            yield folder / name, False
        yield resources.profile(name), True


def profile_folders(environ: Mapping[str, str]) -> list[Path]:
    """Where Snakemake looks for profiles by name: the user's folder, then the site's."""
    home = Path(environ.get("HOME") or Path.home())
    users = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    sites = (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    return [users / "snakemake", *(Path(site) / "snakemake" for site in sites)]


def _names(environ: Mapping[str, str]) -> set[str]:
    names = set()
    for folder in [*profile_folders(environ), resources.profile("local").parent]:
        if folder.is_dir():
            names |= {path.name for path in folder.iterdir() if _profile_file(path) is not None}
    return names


def _profile_file(path: Path) -> Path | None:
    """The file of a profile, of several the one for the latest Snakemake that is not in future."""
    if path.is_file():
        return path.absolute()
    if not path.is_dir():
        return None
    present = _snakemake_major()
    best: tuple[int, Path] | None = None
    for file in sorted(path.iterdir()):
        match = _FILE.fullmatch(file.name)
        if match is None:
            continue
        major = int(match.group(1) or 0)
        if major <= present and (best is None or major > best[0]):
            best = (major, file.absolute())
    return None if best is None else best[1]


def _snakemake_major() -> int:
    try:
        return int(importlib.metadata.version("snakemake").split(".")[0])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return 9


def _read(file: Path) -> Mapping[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        value = yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ProfileError(f"cannot read the profile {file}: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ProfileError(f"the profile {file} is no mapping of Snakemake's options")
    executor = str(value.get("executor") or "local")
    problems = key_problems(file, text, value, executor)
    if problems:
        lines = "".join(f"\n  {line}" for line in problems)
        raise ProfileError(f"the profile has keys that Snakemake would not take:{lines}")
    problems = value_problems(file, text, value)
    found = resource_problems(text, value, executor)
    problems += [f"{file}:{line}: {words}" for line, words in found]
    if problems:
        lines = "".join(f"\n  {line}" for line in problems)
        raise ProfileError(f"the profile would not do what it says:{lines}")
    return value


# What a Snakemake profile says about placement: `set-resources`, `set-threads`,
# `default-resources`. Values that are expressions stay texts.
#
# `agentc.placement.profile` finds profiles and hands them to Snakemake.

Amount: TypeAlias = int | str
"""A value of a resource: a number, a name, or the text of an expression."""

_SIZES = {"": 1, "b": 1e-6, "k": 1e-3, "m": 1, "g": 1e3, "t": 1e6, "p": 1e9}
_BINARY = {"k": 1024e-6, "m": 1.048576, "g": 1073.741824, "t": 1099511.627776}
_TIMES = {"s": 1 / 60, "m": 1, "h": 60, "d": 24 * 60, "w": 7 * 24 * 60}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """`profile` is the one that they stand in. `forced` are resources by rule, `threads` by rule,
    `usual` the defaults (None where the profile has none: Snakemake's hold then)."""

    profile: Profile
    forced: Mapping[str, Mapping[str, Amount]] = field(default_factory=dict)
    threads: Mapping[str, Amount] = field(default_factory=dict)
    usual: Mapping[str, Amount] | None = None


def read_requests(profile: Profile) -> Requests:
    """What a profile says. Raises ProfileError where Snakemake could not read it either."""
    read, file = profile.settings, profile.file
    forced: dict[str, dict[str, Amount]] = {}
    for rule, names in _two_levels(read.get("set-resources"), file):
        forced.setdefault(rule, {}).update(names)
    usual = read.get("default-resources")
    return Requests(
        profile=profile,
        forced=forced,
        threads=_one_level(read.get("set-threads"), file),
        usual=None if usual is None else _one_level(usual, file),
    )


def _two_levels(value: Any, file: Path) -> Iterator[tuple[str, dict[str, Amount]]]:
    if value is None:
        return
    if isinstance(value, dict):
        for rule, names in value.items():
            if not isinstance(names, dict):
                raise ProfileError(
                    f"{file}: `set-resources` wants resources by rule, and `{rule}` has {names!r}"
                )
            yield str(rule), _one_level(names, file)
        return
    for word in value if isinstance(value, list) else str(value).split():
        rule, colon, rest = str(word).partition(":")
        if not colon or "=" not in rest:
            raise ProfileError(f"{file}: `set-resources` wants RULE:NAME=VALUE, not `{word}`")
        yield rule, _one_level([rest], file)


def _one_level(value: Any, file: Path) -> dict[str, Amount]:
    amounts: dict[str, Amount] = {}
    if isinstance(value, dict):
        pairs = [(str(name), setting) for name, setting in value.items()]
    else:
        words = value if isinstance(value, list) else str(value or "").split()
        for word in words:
            if "=" not in str(word):
                raise ProfileError(f"{file}: resources are written NAME=VALUE, not `{word}`")
        pairs = [(str(w).partition("=")[0], str(w).partition("=")[2]) for w in words]
    for name, setting in pairs:
        if setting is not None:
            plain, amount = standard(name, setting)
            amounts[plain] = amount
    return amounts


def standard(name: str, value: Any) -> tuple[str, Amount]:
    """A resource under the one name that Snakemake gives it inside: memory in MB, time in minutes;
    texts that are neither stay as they are."""
    for size in ("mem", "disk"):
        if name == size:
            return f"{size}_mb", _megabytes(value)
        if name == f"{size}_mib":
            whole = _whole(value)
            return f"{size}_mb", round(whole * 1.048576) if isinstance(whole, int) else whole
    return name, _minutes(value) if name == "runtime" else _whole(value)


def _whole(value: Any) -> Amount:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return round(value)
    text = str(value).strip()
    bare = text.strip("'\"")
    return int(bare) if bare.isdecimal() else bare if bare != text else text


def _megabytes(value: Any) -> Amount:
    text = str(value).strip().strip("'\"")
    match = re.fullmatch(r"([\d.]+)\s*([kmgtp]?)(i?)b?(?:ytes)?", text.lower())
    if match is None or not text[:1].isdigit():
        return _whole(value)
    factor = _BINARY.get(match[2], 1.0) if match[3] else _SIZES[match[2]]
    return max(1, round(float(match[1]) * factor))


def _minutes(value: Any) -> Amount:
    text = str(value).strip().strip("'\"").lower()
    match = re.fullmatch(r"([\d.]+)\s*(s|m|h|d|w)[a-z]*", text)
    if match is None:
        return _whole(value)
    return max(1, round(float(match[1]) * _TIMES[match[2]]))
