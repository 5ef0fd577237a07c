"""The job that runs a script: what the script is told, where it stands, what it may not do."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.scripts.stage import job_script
from agentc_backends.user_files import layout

MODULE = "agentc_backends.scripts.stage.job_script"


def test_it_runs_in_any_software() -> None:
    """The lock of a script's own holds nothing of agentc's, and perhaps an old Python."""
    for module in (job_script, layout):
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text, feature_version=(3, 8))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                ours = name.startswith("agentc.program.") or name == layout.__name__
                assert ours or name.partition(".")[0] in sys.stdlib_module_names


def config(text: str, **other: Any) -> dict[str, Any]:
    return {
        "words": [],
        "python": True,
        "files": [{"path": "scripts/own.py", "text": text}],
        "params": {},
        "output": "Folder",
        "seed": 0,
        "network": False,
        **other,
    }


TELLS = """\
import json, os, sys
from pathlib import Path
from beside import X
stage = json.loads(Path(sys.argv[1]).read_text())
found = sorted(str(p) for p in Path().rglob("*") if p.is_file())
told = {"stage": stage, "x": X, "files": found, "same": os.environ["AGENTC_STAGE"] == sys.argv[1]}
Path(stage["output"]["folder"], "told.json").write_text(json.dumps(told))
Path("left_behind").write_text("")
"""


def test_what_a_script_sees(run_job: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder.parent / "artifact.json").write_text('{"type": "Trajectories"}')
    settings = config(TELLS, params={"most": 3}, seed=7)
    settings["files"].append({"path": "scripts/beside.py", "text": "X = '''é\r\n'''"})
    done = run_job(MODULE, settings, inputs={"episodes": [folder]})
    assert done.code == 0, done.output
    told = json.loads((done.data / "told.json").read_text())
    assert told["x"] == "é\n"  # as Python reads a line end
    assert told["same"]
    assert told["files"] == ["scripts/beside.py", "scripts/own.py"]
    assert told["stage"] == {
        "stage": "test",
        "inputs": {
            "episodes": [
                {"type": "Trajectories", "folder": str(folder), "object": str(folder)},
            ]
        },
        "params": {"most": 3},
        "seed": 7,
        "output": {"type": "Folder", "folder": str(done.data)},
    }


def test_rows_are_counted(run_job: Any) -> None:
    text = (
        "import json, sys\n"
        "out = json.load(open(sys.argv[1]))['output']['folder']\n"
        "open(out + '/pairs.jsonl', 'w').write('{}\\n{}\\n')\n"
    )
    done = run_job(MODULE, config(text))
    assert done.code == 0, done.output
    assert done.facts == {"rows": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise SystemExit(3)", "script: scripts/own.py ended with exit status 3"),
        ("import os; os.kill(os.getpid(), 9)", "script: scripts/own.py ended with SIGKILL"),
        ("import nothing_such", "ModuleNotFoundError"),
    ],
)
def test_a_script_that_fails(text: str, said: str, run_job: Any) -> None:
    done = run_job(MODULE, config(text))
    assert done.code == 1
    assert said in done.output


CONNECTS = """\
import socket, subprocess, sys
try:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    print("has a network")
except PermissionError:
    print("has none")
left, right = socket.socketpair()  # between processes of one machine
left.send(b"x")
print("local", right.recv(1))
if len(sys.argv) > 1:
    subprocess.run([sys.executable, __file__], check=True)
"""


@pytest.mark.parametrize(("network", "said"), [(False, "has none"), (True, "has a network")])
def test_the_network_is_asked_for(network: bool, said: str, run_job: Any) -> None:
    """Of the script, and of what it starts."""
    done = run_job(MODULE, config(CONNECTS, network=network))
    assert done.code == 0, done.output
    assert done.output.count(said) == 2
    assert done.output.count("local b'x'") == 2


def test_a_command(run_job: Any) -> None:
    script = 'python=$1; folder=$("$python" own.py); echo done > "$folder/it.txt"\n'
    asks = "import json, os\nprint(json.load(open(os.environ['AGENTC_STAGE']))['output']['folder'])"
    files = [{"path": "own.sh", "text": script}, {"path": "own.py", "text": asks}]
    words = ["sh", "own.sh", sys.executable]
    done = run_job(MODULE, config("", python=False, words=words, files=files))
    assert done.code == 0, done.output
    assert (done.data / "it.txt").read_text() == "done\n"


def test_a_command_that_is_not_there(run_job: Any) -> None:
    done = run_job(MODULE, config("", python=False, words=["no-such-program"], files=[]))
    assert done.code == 1
    assert "cannot start no-such-program" in done.output


def test_metrics_of_scores(run_job: Any, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"task": "a", "score": 1.0},
        {"task": "a", "score": 0.5},
        {"task": "b", "score": 0.25},
        {"task": "c", "score": None},
    ]
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"confidence": 0.95, "name": "brevity", "range": [0, 1]}
    module = "agentc_backends.scripts.stage.job_metrics"
    done = run_job(module, settings, inputs={"scores": [tmp_path]})
    assert done.code == 0, done.output
    metrics = json.loads((done.data / "metrics.json").read_text())
    assert metrics["tasks"]["a"] == {"reward": 0.75, "success": None, "attempts": 2}
    assert (metrics["n"], metrics["n_error"], metrics["n_tasks"]) == (3, 1, 2)
    assert metrics["reward"]["mean"] == 0.5  # of tasks, not of attempts
    assert metrics["success"]["mean"] is None
