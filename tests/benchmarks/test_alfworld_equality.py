"""Our interpreter tells what ALFWorld as released tells: a few games of the comparison that
`python -m benchmarks.alfworld_equality` makes of all of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from benchmarks.alfworld_upstream.process import LOCK, upstream_python

from benchmarks import alfworld_equality

SHARED = Path(os.environ.get("AGENTC_SHARED", Path(__file__).parents[3] / "shared")) / "data"
GAMES = SHARED / "alfworld"


@pytest.mark.slow
@pytest.mark.parametrize(("wording", "games"), [("move", 6), ("put", 3)])
def test_ours_and_textworld_tell_the_same(
    wording: str, games: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not GAMES.is_dir():
        pytest.skip(f"ALFWorld's games are not in {GAMES}; set AGENTC_SHARED")
    if upstream_python(build=False, report=print) is None:
        pytest.skip(f"build it: python -m agentc.runtime.build_software {LOCK}")
    rules = GAMES if wording == "move" else GAMES / "legacy_0.3"
    words = ["--games", str(GAMES), "--rules", str(rules), "--part", "valid_unseen"]
    words += ["--every", str(134 // games), "--journal", str(tmp_path / "journal")]
    assert alfworld_equality.main(words) == 0
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert {line["wording"] for line in lines} == {wording}
    assert len(lines) >= games
    assert all(sum(line["commands"]) > 20 for line in lines)
    # What is in the journal is not played again, and a difference is told.
    assert alfworld_equality.main(words) == 0
    assert len((tmp_path / "journal").read_text().splitlines()) == len(lines)
    lines[0]["difference"] = "x"
    (tmp_path / "journal").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert alfworld_equality.main(["--journal", str(tmp_path / "journal"), "--report"]) == 1
    assert f"| {wording} | memoised | {len(lines)} |" in capsys.readouterr().out
