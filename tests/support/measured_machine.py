"""Stores in which no run measures the machine first, which takes ten CPU seconds in each new store.
tests/cost/test_calibration.py has the measurement itself."""

from __future__ import annotations

import json
from pathlib import Path

from agentc.cost.hardware import calibration_file
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout
from agentc_backends.software import TORCH


def skip_measurement(store: Path) -> None:
    """Note in the store that the machine was too busy to be measured: agentc tries again an hour
    later, and until then estimates as if nothing was known."""
    file = calibration_file(StoreLayout(store), lock_digest(TORCH.text))
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"measured": None}), encoding="utf-8")
