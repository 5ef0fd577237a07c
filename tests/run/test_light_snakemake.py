"""Snakemake as agentc starts it: what it needs no more than its SLURM plugin's report does is read
when something first uses it, and is then what it always was."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.skipif(find_spec("pandas") is None, reason="needs pandas (`.[slurm]`)")

USES = """
import sys
from agentc.run.slurm_plugin import LAZY, import_lazily
for each in LAZY:
    import_lazily(each)
import pandas as pd, numpy
import snakemake_executor_plugin_slurm.efficiency_report as report
assert not {"pandas.core", "numpy.linalg"} & set(sys.modules), "read before its first use"
assert pd.isna(None) and report.pd is pd
from pandas import DataFrame
import pandas.core.frame
assert pd.DataFrame is DataFrame is pandas.core.frame.DataFrame
assert numpy.arange(3).sum() == 3
assert type(sys.modules["pandas"]).__name__ == "module"
try:
    pd.no_such_name
except AttributeError as error:
    assert "no_such_name" in str(error)
"""


def test_a_lazily_imported_package_is_read_at_its_first_use() -> None:
    subprocess.run([sys.executable, "-c", USES], check=True)


@pytest.mark.slow
def test_it_is_snakemake() -> None:
    words = ["--version"]
    said = {
        subprocess.run(
            [sys.executable, "-m", module, *words], check=True, capture_output=True
        ).stdout
        for module in ("agentc.run.slurm_plugin", "snakemake")
    }
    assert len(said) == 1
