"""The comparison with the released search; the real one runs where AGENT_R_CHECKOUT says it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks import agent_r_search

CHECKOUT = os.environ.get("AGENT_R_CHECKOUT")


def test_it_says_what_it_needs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert agent_r_search.main([]) == 2
    assert "git clone https://github.com/bytedance/Agent-R" in capsys.readouterr().err
    assert agent_r_search.main(["--released", str(tmp_path)]) == 2


@pytest.mark.slow
@pytest.mark.skipif(CHECKOUT is None, reason="AGENT_R_CHECKOUT names no checkout of Agent-R")
def test_both_grow_the_same_trees(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--only", "scripted", "--tasks", "3", "--depth", "4", "--iterations", "4"]
    assert agent_r_search.main(["--released", str(CHECKOUT), *words]) == 0
    assert "3 of 3 trees are equal" in capsys.readouterr().out
