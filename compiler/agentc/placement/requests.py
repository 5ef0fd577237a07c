"""What a Snakemake profile says about placement: `set-resources`, `set-threads`,
`default-resources`. Values that are expressions stay texts.

`agentc.placement.profile` finds profiles and hands them to Snakemake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from agentc.placement.profile import Profile, ProfileError

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
    found: dict[str, Amount] = {}
    if isinstance(value, dict):
        pairs = [(str(name), each) for name, each in value.items()]
    else:
        words = value if isinstance(value, list) else str(value or "").split()
        for word in words:
            if "=" not in str(word):
                raise ProfileError(f"{file}: resources are written NAME=VALUE, not `{word}`")
        pairs = [(str(w).partition("=")[0], str(w).partition("=")[2]) for w in words]
    for name, each in pairs:
        if each is not None:
            plain, amount = standard(name, each)
            found[plain] = amount
    return found


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
