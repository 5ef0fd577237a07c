"""SearcherProcess: the program that proposes values, in its own software environment.

It is asked a line of JSON and answers one. The first opens the study: `file`, `name`, `direction`,
`sampler`, `pruner`, `startup_trials`, `seed`, and `axes`, each with `choices`, `low`, `high`,
`log`, `step`, `integer`; its answer holds the `trials` there are. Then come `{"do": ..., "with":
[...]}`: `ask` [], `report` [number, round, value], `tell` [number, state, value or null, why].
Neighbours: `study.py`, which asks; `agentc.tracking.trackers`, programs that are only listened to.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentc.backend_api.trackers import Searcher
from agentc.exit_codes import EXIT_FAILED, CommandError
from agentc.runtime.software import environment
from agentc.runtime.store.layout import StoreLayout
from agentc.software.requirements import Needed

_CPUS = 1
_END_S = 10.0


class SearcherFailedError(CommandError):
    """The program ended; its text says where its last words are."""

    exit_code = EXIT_FAILED


class SearcherProcess:
    """Started at once, with the opening request; `log` takes what its library prints. Raises
    SoftwareEnvironmentError where it cannot be started, SearcherFailedError where it ends."""

    def __init__(
        self,
        searcher: Searcher,
        layout: StoreLayout,
        opening: Mapping[str, Any],
        log: Path,
    ) -> None:
        needed = needed_by_searcher(searcher)
        directory, record = environment.ensure_environment(layout, needed.sha256, needed.lock)
        code = environment.code_directory(layout, [searcher.program])
        command = environment.python_command(directory, record, layout.root, code)
        programs = environment.programs_of(directory, record)
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, "-m", searcher.program],
                env=environment.job_variables(code, _CPUS, False, {}, programs),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # Ctrl-C reaches it as the end of its input, after what it was asked.
                start_new_session=True,
            )
        self.trials: list[Mapping[str, Any]] = self._asked(opening)["trials"]

    def ask(self, what: str, *words: Any) -> dict[str, Any]:
        """One request and its answer."""
        return self._asked({"do": what, "with": words})

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # its end is told below
            self._process.stdin.write(json.dumps(request).encode("utf-8") + b"\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            raise SearcherFailedError(
                f"the program that proposes values ended with {status}; its log: {self._log}"
            )
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer


def needed_by_searcher(searcher: Searcher) -> Needed:
    """Its software environment, which no job shares."""
    software = searcher.software
    return Needed(name=software.name, lock=software.text, users=("search",))
