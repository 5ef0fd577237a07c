"""Limits: what a stranger's file may cost to read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """What a spec may cost to read. `nodes` counts after alias expansion."""

    file_bytes: int = 512 * 1024
    depth: int = 40
    nodes: int = 200_000
    aliases: int = 1_000
    scalar_characters: int = 128 * 1024
    key_characters: int = 256


SPEC_LIMITS = ReadLimits()
