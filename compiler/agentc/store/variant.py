"""Variant: which experiment a plan is of: a name, a scale, and the params that were chosen.

Run folders, reports and what `gc` keeps go by its label (docs/design/running.md).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]")
FULL = "full"
"""What `--scale` calls the spec as it is written, where the spec declares no scale of that name."""
_LONGEST = 120
"""Characters of a label; file systems take 255 bytes, and other names are made of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """`chosen` are the params given with `-p` whose values are not their defaults."""

    name: str
    scale: str | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """`quickstart`, `quickstart@smoke`, `quickstart@smoke,seed=1`: for people, and safe as the
        name of a folder. What had to be left out of it is told apart by a digest."""
        pairs = sorted(self.chosen.items())
        texts = [(name, value_text(value)) for name, value in pairs]
        safe = [f"{name}={_UNSAFE.sub('_', text)}" for name, text in texts]
        parts = ",".join([*([self.scale] if self.scale is not None else []), *safe])
        label = f"{self.name}@{parts}" if parts else self.name
        plain = all(text and not _UNSAFE.search(text) for _, text in texts)
        if plain and len(label) <= _LONGEST:
            return label
        whole = json.dumps([self.name, self.scale, pairs], sort_keys=True)
        return f"{label[:_LONGEST]}~{hashlib.sha256(whole.encode('utf-8')).hexdigest()[:8]}"


def variant_of(document: Mapping[str, Any]) -> Variant:
    """The variant that a plan (plan.json, decoded) is of."""
    return Variant(
        name=str(document["name"]),
        scale=(document.get("experiment") or {}).get("scale"),
        chosen=document.get("chosen") or {},
    )


def value_text(value: Any) -> str:
    """A param's value, as `-p` takes it."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
