"""docs/tutorial.md is run as it stands: its files are written, its commands typed, and what it says
of the results holds.

Checks and plans always; the runs are `long`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.support.patience import NEVER_S, PATIENCE_S

from agentc.text import format_duration

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
WORLD = "world.py"
MOST_LINES = 46
_FILE = re.compile(r"^`([\w./]+)`:\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)

Typed = Callable[[str], "subprocess.CompletedProcess[str]"]


def files() -> dict[str, str]:
    """The files that the page shows, by name."""
    return dict(_FILE.findall(PAGE.read_text(encoding="utf-8")))


def commands() -> list[str]:
    """What the page has its reader type, in order."""
    blocks = _COMMANDS.findall(PAGE.read_text(encoding="utf-8"))
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The reader's folder with all files of the page."""
    place = tmp_path / "reader"
    for name, text in files().items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    return place


@pytest.fixture
def typed(folder: Path, repository: Path) -> Typed:
    """Types a command there, as a user who has trusted nothing yet."""
    software = os.environ.get("AGENTC_SOFTWARE", repository / ".agentc" / "software")
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AGENTC_")},
        "AGENTC_SOFTWARE": str(software),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "XDG_CONFIG_HOME": str(folder.parent / "config"),
        "NO_COLOR": "1",
    }

    def run(command: str) -> subprocess.CompletedProcess[str]:
        limit = NEVER_S if command.startswith("agentc run") else PATIENCE_S
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done

    return run


def test_the_world_is_as_short_as_promised() -> None:
    lines = [line for line in files()[WORLD].splitlines() if line.strip()]
    assert len(lines) <= MOST_LINES
    assert f"{MOST_LINES} lines" in PAGE.read_text(encoding="utf-8")


def test_its_spec_checks_and_plans(typed: Typed) -> None:
    refused = typed("agentc check parcels.yaml 2>&1 || true").stdout
    assert "`agentc trust .`, once" in refused
    assert "agentc trust ." in commands()
    typed("agentc trust .")
    checked = typed("agentc check parcels.yaml 2>&1").stdout
    assert checked.startswith("parcels.yaml: no errors;")
    planned = json.loads(typed("agentc plan parcels.yaml -j 2 --json").stdout)
    jobs = {job["id"] for job in planned["jobs"]}
    assert {"expert", "rft@seed=2", "dpo@seed=0", "claims", "report"} <= jobs
    _, median, _ = planned["estimate"]["wall_s"]
    expected = f"\nestimate: about {format_duration(median)} on an idle machine\n"
    assert expected in PAGE.read_text(encoding="utf-8")


def test_what_it_has_one_try_is_an_error_with_the_right_word(folder: Path, typed: Typed) -> None:
    assert "write `min_rewards` in place of `min_reward`" in PAGE.read_text(encoding="utf-8")
    spec = folder / "parcels.yaml"
    spec.write_text(spec.read_text().replace("min_reward:", "min_rewards:"))
    said = typed("agentc trust . && agentc check parcels.yaml 2>&1 || true").stdout
    assert "did you mean `min_reward`?" in said


def test_the_figure_shows_each_claim_that_was_measured(folder: Path, typed: Typed) -> None:
    seen = {"low": 0.05, "mean": 0.15, "high": 0.25}
    claims = [{"what": f"RFT over {name}", "observed": seen} for name in ("SFT", "DPO")]
    claims.append({"what": "not measured", "observed": None})
    (folder / "claims.json").write_text(json.dumps({"claims": claims}))
    typed("python figure.py < claims.json")
    drawn = ElementTree.parse(folder / "figure.svg").getroot()
    assert [each.text for each in drawn.findall("{*}text")] == [
        "RFT over SFT", "+0.150", "RFT over DPO", "+0.150",
    ]  # fmt: skip


@pytest.mark.long
def test_all_its_commands_in_order(folder: Path, typed: Typed, repository: Path) -> None:
    shared = Path(os.environ.get("AGENTC_SOFTWARE", repository / ".agentc" / "software"))
    if not list(shared.glob("*/bin/python")):
        pytest.skip(f"no software stacks in {shared}; `make software` builds them")
    told = commands()
    assert sum(command.startswith("agentc run") for command in told) == 2
    said = {command: typed(command).stdout for command in told}
    whole = said["agentc run parcels.yaml"]
    assert "42 jobs" in said["agentc plan parcels.yaml"]
    assert "29 jobs to run, 13 results in the store already" in whole
    verdicts = json.loads((folder / "claims.json").read_text())["claims"]
    assert [claim["name"] for claim in verdicts] == ["rft", "dpo", "rivals"]
    # What the page says, give or take what processors round: three seeds decide nothing.
    assert {claim["verdict"] for claim in verdicts} == {"inconclusive"}
    assert "x 3 runs" in said["agentc report --claims parcels.yaml"]
    assert len(ElementTree.parse(folder / "figure.svg").getroot().findall("{*}circle")) == 3
    tables = {line.split()[0] for line in said["agentc report parcels.yaml --tables"].splitlines()}
    assert {"sweep:parcels/test", "results@seed=2", "claims"} <= tables
    assert "\\begin{tabular}" in (folder / "results.tex").read_text()
    assert (folder / "bundle" / "parcels.lock").is_file()
    assert "stage `rft@seed=0`" in (folder / "model" / "README.md").read_text()
