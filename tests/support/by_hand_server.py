"""A server of ours that somebody runs by hand, at an endpoint that wants their key."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.patience import wait_for

from agentc.runtime.software.lock_text import lock_digest

_ROOT = Path(__file__).parents[2]


@contextmanager
def served(folder: Path, software: Any, module: str, key: str, *words: str) -> Iterator[str]:
    """The address of a server program under a software stack that is built."""
    ready = folder / f"{module.split('.')[-2]}.json"
    environments = Path(os.environ.get("AGENTC_SOFTWARE", _ROOT / ".agentc/software"))
    python = environments / lock_digest(software.text)[:16] / "bin" / "python"
    argv = [str(python), "-m", module, "--host", "127.0.0.1", "--port", "0"]
    variables = {
        **os.environ, "AGENTC_TOKEN": key, "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{_ROOT / 'compiler'}:{_ROOT / 'backends'}",
    }  # fmt: skip
    server = subprocess.Popen([*argv, "--ready-file", str(ready), *words], env=variables)
    try:
        wait_for(lambda: ready.exists() or server.poll() is not None)
        assert server.poll() is None
        told = json.loads(ready.read_text())
        yield f"http://{told['host']}:{told['port']}/v1"
    finally:
        server.terminate()
        server.wait()
