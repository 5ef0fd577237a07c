"""The reduced quickstart is a spec like any other: benches and end-to-end tests run it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.reduced import Size, write_reduced

from agentc.cli import main


def test_the_reduced_quickstart_has_no_errors(tmp_path: Path) -> None:
    for name, size in (("small", Size()), ("large", Size(larger_model=True))):
        assert main(["check", str(write_reduced(tmp_path / f"{name}.yaml", size))]) == 0
