"""compile_to: write a compiled directory.

```
plan.json  Snakefile  config.yaml  <the spec>  software/<name>.txt  profiles/default/config.yaml
```
Everything is text that follows from the plan and the spec; results live in the store.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from agentc import resources
from agentc.plan.job import Plan
from agentc.plan.render import render_plan

_CONFIG = """\
# Settings of the Snakefile; `snakemake --config store=...` overrides them.
# The store: null means $AGENTC_STORE, else .agentc/store in the working directory.
store: null
# The folder that relative paths of the spec start at.
spec_directory: {spec_directory}
"""


def compile_to(
    directory: Path,
    plan: Plan,
    spec_text: str | None = None,
    spec_directory: Path | None = None,
) -> tuple[Path, ...]:
    """Write the compiled directory and return the paths of its files, plan.json last.

    `spec_directory` is where relative paths in the spec start; it is written relative to
    `directory`.

    Each file is replaced atomically, plan.json after the files that it names, so whoever runs
    the directory meanwhile sees the old plan or the new one. Nothing else in the directory (a
    store, Snakemake's own folder) is touched. Raises OSError when it cannot be written.
    """
    texts = {f"software/{name}.txt": lock.lock for name, lock in sorted(plan.software.items())}
    texts["Snakefile"] = resources.snakefile().read_text(encoding="utf-8")
    profile = resources.profile("local") / "config.yaml"
    texts["profiles/default/config.yaml"] = profile.read_text(encoding="utf-8")
    where = "null"
    if spec_directory is not None:
        where = json.dumps(os.path.relpath(spec_directory.resolve(), directory.resolve()))
    texts["config.yaml"] = _CONFIG.format(spec_directory=where)
    if spec_text is not None:
        texts[_spec_name(plan, set(texts))] = spec_text
    texts["plan.json"] = render_plan(plan)
    return tuple(_write(directory / name, text) for name, text in texts.items())


def _spec_name(plan: Plan, taken: set[str]) -> str:
    """The spec's own name, unless a file of the directory has it already."""
    name = plan.spec_file or "spec.yaml"
    return name if name not in {*taken, "plan.json"} else f"spec-{name}"


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    encoded = text.encode("utf-8")
    if path.is_file() and path.read_bytes() == encoded:
        return path  # keep the old time: nothing changed
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(encoded)
            os.fchmod(out.fileno(), 0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
