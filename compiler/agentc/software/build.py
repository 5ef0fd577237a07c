"""Builds several software stacks at once, each in a process of its own, with their progress.

A process can be ended when the user gives up, and pip's output is read line by line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TextIO

from agentc.program.child import die_with_parent
from agentc.runtime.machine import process
from agentc.runtime.machine.output_filters import printable, unguarded
from agentc.runtime.software.job_software import SoftwareError, read_complete
from agentc.runtime.store.file_system import explain_start
from agentc.runtime.store.layout import StoreLayout
from agentc.software.requirements import Needed

if TYPE_CHECKING:
    from rich.live import Live


AT_ONCE = 3
"""Builders beside each other: they wait for the index and the disk most of the time."""
_POLL_S = 0.2


def build_all(
    needed: Sequence[Needed],
    layout: StoreLayout,
    report: Callable[[Needed, str], None],
    *,
    at_once: int = AT_ONCE,
    stop: threading.Event | None = None,
    spec_directory: Path | None = None,
    withheld: Iterable[str] = (),
) -> None:
    """Build those that are not ready. `report` receives lines of progress, from several threads.
    Files of container images may lie in the spec's directory; builders do not see the variables
    that are `withheld`.

    One that fails does not stop the others; `stop`, once set, ends them all. Raises
    SoftwareError with every failure.
    """
    missing = [one for one in needed if not one.ready(layout)]
    if not missing:
        return
    kept_back = set(withheld)
    variables = {name: value for name, value in os.environ.items() if name not in kept_back}
    if spec_directory is not None:
        variables.setdefault("AGENTC_SPEC_DIR", str(spec_directory.absolute()))
    running = _Running(variables)
    failures: list[str] = []
    with TemporaryDirectory(prefix="agentc-locks-") as folder:
        pool = ThreadPoolExecutor(max_workers=max(1, at_once))
        try:
            builds = {
                pool.submit(_build, one, layout, Path(folder), report, running): one
                for one in missing
            }
            pending = set(builds)
            while pending:
                done, pending = wait(pending, timeout=_POLL_S)
                for build in done:
                    failure = build.result()
                    if failure is not None:
                        failures.append(f"the software stack {builds[build].name}: {failure}")
                if stop is not None and stop.is_set():
                    break
        finally:
            # Whoever gives up (Ctrl-C) waits for nobody.
            running.end()
            pool.shutdown(wait=True, cancel_futures=True)
    if failures:
        raise SoftwareError("\n".join(sorted(failures)))


class _Running:
    """The builders at work, which can be ended all at once."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._guard = threading.Lock()
        self._builders: set[subprocess.Popen[str]] = set()
        self._over = False

    def start(self, argv: Sequence[str]) -> subprocess.Popen[str] | None:
        me = os.getpid()
        with self._guard:
            if self._over:
                return None
            builder = subprocess.Popen(
                argv,
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(signal.SIGKILL, me),
            )
            self._builders.add(builder)
            return builder

    def forget(self, builder: subprocess.Popen[str]) -> None:
        with self._guard:
            self._builders.discard(builder)

    def end(self) -> None:
        with self._guard:
            self._over = True
            for builder in self._builders:
                process.signal_group(builder.pid, signal.SIGKILL)


def _build(
    one: Needed,
    layout: StoreLayout,
    folder: Path,
    report: Callable[[Needed, str], None],
    running: _Running,
) -> str | None:
    """Build one; what went wrong, or None."""
    lock = folder / f"{one.name}.txt"
    lock.write_bytes(one.lock.encode("utf-8"))
    argv = [sys.executable, "-m", "agentc.runtime.build_software"]
    try:
        builder = running.start([*argv, "--store", str(layout.root), str(lock)])
    except OSError as error:
        trouble = explain_start(error)
        if trouble is None:
            raise
        return trouble
    if builder is None:
        return "given up"
    assert builder.stdout is not None
    assert builder.stderr is not None
    errors: list[str] = []
    listener = threading.Thread(target=lambda stream: errors.extend(stream), args=(builder.stderr,))
    listener.start()
    head = f"software {one.name}: "
    for line in builder.stdout:
        report(one, line.rstrip().removeprefix(head))
    status = builder.wait()
    listener.join()
    running.forget(builder)
    if status == 0 and read_complete(one.directory(layout)) is not None:
        return None
    return "".join(errors).strip().removeprefix(head) or f"its builder exited with {status}"


_EVERY_S = 10.0


class Progress:
    """Shows lines of several builders. Use as a context manager; `report` may be called from any
    thread."""

    def __init__(self, needed: Sequence[Needed], stream: TextIO) -> None:
        self._stream = stream
        self._guard = threading.Lock()
        self._lines = {one.name: "waiting" for one in needed}
        self._told: dict[str, float] = {}
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        if self._stream.isatty() and self._lines:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=unguarded(self._stream))
            self._live = Live(console=console, refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def report(self, one: Needed, line: str) -> None:
        """The latest of what a builder said."""
        line = printable(line)
        with self._guard:
            self._lines[one.name] = line
            if self._live is not None:
                self._redraw(self._live)
                return
            now = time.monotonic()
            last = self._told.get(one.name)
            final = line.startswith("software ready")
            if last is None or final or now - last >= _EVERY_S:
                self._told[one.name] = now
                self._stream.write(f"{time.strftime('%H:%M:%S')} {one.name}: {line}\n")
                self._stream.flush()

    def _redraw(self, live: Live) -> None:
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True, overflow="ellipsis")
        for name, line in self._lines.items():
            grid.add_row(Text(name, style="bold"), Text(line))
        live.update(grid)
