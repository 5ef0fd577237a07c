"""A command that takes --scale compiles at that scale: an unknown one is an error everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.cli import main

SPEC = Path(__file__).parent / "rounds.yaml"


@pytest.mark.parametrize(
    "words",
    [
        ("check", SPEC),
        ("plan", SPEC),
        ("plan", "--cost", SPEC),
        ("report", "--claims", SPEC),
        ("bundle", "--bare", SPEC, "-o", "out"),
        ("bundle", SPEC, "-o", "out"),
        ("lock", SPEC, "-o", "out.lock"),
        ("run", SPEC, "--dry-run"),
        ("graph", SPEC),
        ("explain", "sft", SPEC),
        ("why", SPEC, "sft"),
        ("diff", SPEC, SPEC),
    ],
)
def test_scale(
    words: tuple[str | Path, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTC_STORE", str(tmp_path / "store"))
    code = main([*map(str, words), "--scale", "nowhere"])
    assert code == (2 if words[0] == "diff" else 1)
    assert "AGC431" in capsys.readouterr().err
