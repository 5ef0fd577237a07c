"""The scratch folder of a run: where its Snakemakes, on the submit host and on nodes, keep caches
and temporary files, so that none of them stays in a home directory or in /tmp. Jobs get back what
the user's shell had (`restore`): caches of models are found through the same variables."""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping

VARIABLE = "AGENTC_SCRATCH"
"""The folder, and the values before, as JSON."""
_CACHE, _TEMPORARY = "XDG_CACHE_HOME", "TMPDIR"
_ALIASES = ("TMP", "TEMP", "TEMPDIR")
"""What Snakemake sets for a job's shell besides TMPDIR."""


def moved_to(folder: str, environ: MutableMapping[str, str]) -> dict[str, str]:
    """The environment of a Snakemake that keeps such files in that folder."""
    before = {name: environ.get(name) for name in (_CACHE, _TEMPORARY)}
    word = json.dumps({"folder": folder, "before": before}, sort_keys=True)
    return {**environ, _CACHE: folder, _TEMPORARY: folder, VARIABLE: word}


def restore(environ: MutableMapping[str, str] | None = None) -> None:
    """Give the variables of this process the values that they had before the run, where they still
    name its scratch folder: a cluster may give each job a folder of its own."""
    environ = os.environ if environ is None else environ
    word = environ.pop(VARIABLE, "")
    if not word:
        return
    try:
        known = json.loads(word)
        folder, before = str(known["folder"]), dict(known["before"])
    except (ValueError, KeyError, TypeError):
        return
    for name in (_CACHE, _TEMPORARY, *_ALIASES):
        if environ.get(name) == folder:
            value = before.get(_TEMPORARY if name in _ALIASES else name)
            if value is None:
                del environ[name]
            else:
                environ[name] = value
