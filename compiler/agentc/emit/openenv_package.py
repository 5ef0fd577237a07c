"""Writes an environment as a package of OpenEnv's format: manifest, client, server, Dockerfile. The
server in it is ours, started from the program and the settings of a lease.

In the texts `{name}` is the package's name, `{Name}` that of its classes. The layout is what
`openenv init` of 0.10 makes and `openenv validate` reads.
"""

from __future__ import annotations

import re
from pathlib import Path

from agentc.emit.environment_package import ExportedEntry, ExportError, write_texts, write_whole

MANIFEST = """\
spec_version: 1
name: {name}
version: {version}
type: space
runtime: fastapi
app: server.app:app
port: 8000
validation:
  reward:
    range: [{low}, {high}]
    floor_margin: 0.1
  resources:
    cpu: 1.0
    memory_mb: 1024
    disk_mb: 512
    episode_timeout_s: 600.0
  capabilities:
    verifier:
      kind: reward_channel
  types:
    tags: [text, agentc]
"""

PROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "openenv-{dashed}"
version = "{version}"
description = "{doc}"
requires-python = ">=3.11"
# What the client needs; the server's packages are in requirements.lock, with hashes.
dependencies = ["openenv>=0.10"]

[project.scripts]
server = "{name}.server.app:main"

[tool.setuptools]
packages = ["{name}", "{name}.server"]
package-dir = {{ "{name}" = ".", "{name}.server" = "server" }}
"""

INIT = '''\
"""{doc}"""

from .client import {Name}Env
from .models import {Name}Action, {Name}Observation

__all__ = ["{Name}Action", "{Name}Env", "{Name}Observation"]
'''

MODELS = '''\
"""What an agent says to the environment, and what it observes."""

from openenv.core.env_server.types import Action, Observation
from pydantic import Field


class {Name}Action(Action):
    action: str = Field(..., description="The agent's words")


class {Name}Observation(Observation):
    text: str = Field(default="", description="What the agent observes")
'''

CLIENT = '''\
"""A typed client; `reset` takes `task_id=`, or `split=` with `seed=`, which chooses its task."""

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.types import State

from .models import {Name}Action, {Name}Observation


class {Name}Env(EnvClient[{Name}Action, {Name}Observation, State]):
    def _step_payload(self, action: {Name}Action) -> dict[str, Any]:
        return {{"action": action.action}}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[{Name}Observation]:
        reward, done = payload.get("reward"), payload.get("done", False)
        text = payload.get("observation", {{}}).get("text", "")
        observed = {Name}Observation(text=text, reward=reward, done=done)
        return StepResult(observation=observed, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)
'''

APP = '''\
"""The server: agentc's own, with the settings of environment.json. `--host`, `--port`."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE / "packages"))

from agentc_backends.agents.exported.application import exported_app, serve_exported  # noqa: E402

app = exported_app(HERE / "environment.json")


def main() -> None:
    serve_exported(app)


if __name__ == "__main__":
    main()
'''

DOCKERFILE = """\
FROM python:3.11-slim
WORKDIR /app/env
COPY requirements.lock .
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock
COPY . .
RUN useradd --create-home --uid 1000 player
USER player
EXPOSE 8000
CMD ["python", "server/app.py", "--host", "0.0.0.0", "--port", "8000"]
"""

README = """\
---
title: {title}
emoji: 🎲
colorFrom: blue
colorTo: green
sdk: docker
pinned: false
app_port: 8000
tags:
  - openenv
---

# {title}

{doc} Exported by `agentc dev export openenv` ({release}) from `{backend}`.

```sh
pip install -r requirements.lock --no-deps --require-hashes
python server/app.py                       # http://127.0.0.1:8000
docker build -t {dashed} -f server/Dockerfile . && docker run -p 8000:8000 {dashed}
```

```python
from {name} import {Name}Action, {Name}Env

with {Name}Env(base_url="http://127.0.0.1:8000").sync() as world:
    result = world.reset(split="{split}", seed=0)
    result = world.step({Name}Action(action="..."))
    print(result.observation.text, result.reward, result.done)
```

Rewards of an episode run from {low} to {high}, a success has at least {success}. Splits: {splits}.
An episode is one WebSocket connection. Anyone who reaches the server may play,
unless AGENTC_TOKEN is set where it starts.

| file | is |
|---|---|
| `environment.json` | the environment's program and its settings |
| `packages/` | agentc's runtime and its backends, as they were |
| `requirements.lock` | what the server needs, with hashes |
| `openenv.yaml`, `pyproject.toml`, `client.py`, `models.py` | OpenEnv's manifest and client |
"""


_PLAIN_LINES = re.compile(r"^# agentc: (?!python )", re.MULTILINE)


def write_openenv_package(target: Path, name: str, entry: ExportedEntry) -> int:
    """The number of files written; `target` appears whole, or not at all. Raises ExportError,
    BundleError, OSError."""
    entry.check()
    if _PLAIN_LINES.search(entry.lock):
        raise ExportError(
            f"the software stack `{entry.backend.software.name}` is more than a list of "
            "pins, so no plain `pip install` makes it; `agentc serve` serves it where agentc is"
        )
    return write_whole(target, lambda draft: _write(draft, name, entry))


def _write(draft: Path, name: str, entry: ExportedEntry) -> None:
    files = {
        "openenv.yaml": MANIFEST,
        "pyproject.toml": PROJECT,
        "__init__.py": INIT,
        "models.py": MODELS,
        "client.py": CLIENT,
        "README.md": README,
    }
    write_texts(draft, files, entry.words(name))
    server = draft / "server"
    server.mkdir()
    (server / "__init__.py").write_text("", encoding="utf-8")
    (server / "app.py").write_text(APP, encoding="utf-8")
    (server / "Dockerfile").write_text(DOCKERFILE, encoding="utf-8")
    (draft / "requirements.lock").write_text(entry.lock, encoding="utf-8")
    entry.write_world(draft)
