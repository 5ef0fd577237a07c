"""A compiled directory under bare Snakemake makes what `agentc run` makes, byte for byte.
`test_hidden_texts.py` has the same of a bundle where agentc is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bare_snakemake import made, snakemake
from smoke import Smoke, agentc

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_a_compiled_directory_makes_the_same_under_bare_snakemake(
    smoke: Smoke, tmp_path: Path
) -> None:
    agentc("bundle", "--bare", smoke.spec, "-o", tmp_path / "compiled")
    snakemake(Path(sys.executable), tmp_path / "compiled")
    assert made(tmp_path / "compiled" / ".agentc" / "store") == made(smoke.store)
