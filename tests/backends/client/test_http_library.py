"""The client in a software environment that has httpx2's predecessor only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_a_plan_locked_before_httpx2_finds_httpx(tmp_path: Path) -> None:
    (tmp_path / "httpx").mkdir()
    (tmp_path / "httpx/__init__.py").write_text("class AsyncClient: pass\n")
    code = (
        "import sys; sys.modules['httpx2'] = None\n"
        "from agentc_backends.http_library import httpx2\n"
        "print(httpx2.__name__, httpx2.AsyncClient.__name__)"
    )
    paths = [str(tmp_path), *(str(ROOT / name) for name in ("compiler", "backends"))]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["httpx", "AsyncClient"]
