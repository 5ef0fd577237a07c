"""Interpreters of software stacks for tests that need a package of theirs; such a test is
skipped where the environment is not built."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentc.backend_api import Software
from agentc.runtime.software.lock_text import lock_digest

ROOT = Path(__file__).parents[2]


def built_python(environment: Software) -> str:
    """Its interpreter: the store's, or that in AGENTC_<NAME>_PYTHON."""
    variable = f"AGENTC_{environment.name.upper().replace('-', '_')}_PYTHON"
    given = os.environ.get(variable)
    digest = lock_digest(environment.lock)[:16]
    store = Path(os.environ.get("AGENTC_STORE", ROOT / ".agentc" / "store"))
    built = Path(os.environ.get("AGENTC_SOFTWARE", store / "software"))
    place = Path(given) if given else built / digest / "bin" / "python"
    if not place.exists():
        pytest.skip(f"the {environment.name} environment is not built ({place}); set {variable}")
    return str(place)
