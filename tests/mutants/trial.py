"""A copy of the checkout in which one fault at a time is put, and the tests that are run on it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.mutants.fault import Fault, FaultError

LIMIT_S = 600.0
_TORCH = "tests/torch/"
_PASSED, _FAILED = 0, 1
"""Exit statuses of pytest; the others mean that it could not run the tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreters:
    """The Python of the tests, and that of tests/torch."""

    usual: Path
    torch: Path

    def of(self, test: str) -> Path:
        return self.torch if test.startswith(_TORCH) else self.usual


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a fault. `why` says of one that was not caught which test passed, or why
    nothing could be run; of one that was caught it is empty."""

    fault: Fault
    word: Literal["caught", "survived", "cannot run", "cannot apply"]
    seconds: float
    why: str = ""


class Copy:
    """What git knows or would take of the checkout, under a folder of its own."""

    def __init__(self, repository: Path, folder: Path, interpreters: Interpreters) -> None:
        self._root = folder
        self._interpreters = interpreters
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=repository,
            check=True,
            capture_output=True,
        ).stdout
        for name in filter(None, names.decode("utf-8").split("\0")):
            source, target = repository / name, folder / name
            if source.exists():  # one that was removed may still be in the index
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)

    def passes_without(self, tests: Sequence[str]) -> str:
        """Run tests on the source as it is; what failed, or "" when all passed."""
        for torch in (False, True):
            chosen = [test for test in tests if test.startswith(_TORCH) is torch]
            if chosen:
                status, output = self._run(chosen)
                if status != _PASSED:
                    return output
        return ""

    def try_out(self, fault: Fault) -> Verdict:
        """Put the fault in, run its tests, and take it out again."""
        began = time.monotonic()
        word: Literal["caught", "survived", "cannot run", "cannot apply"] = "caught"
        why = ""
        try:
            with self._holding(fault):
                for test in fault.tests:
                    status, output = self._run(["-x", test])
                    if status == _PASSED and " passed" in output:
                        word, why = "survived", f"{test} passes"
                        break
                    if status != _FAILED:
                        word, why = "cannot run", f"{test}:\n{output}"
                        break
        except (FaultError, OSError) as error:
            word, why = "cannot apply", str(error)
        return Verdict(fault=fault, word=word, seconds=time.monotonic() - began, why=why)

    @contextmanager
    def _holding(self, fault: Fault) -> Iterator[None]:
        path = self._root / fault.file
        text = path.read_text(encoding="utf-8")
        faulty = fault.applied(text)
        try:
            _rewrite(path, faulty)
            yield
        finally:
            _rewrite(path, text)

    def _run(self, arguments: Sequence[str]) -> tuple[int, str]:
        """The exit status of pytest, and the end of what it said."""
        python = self._interpreters.of(arguments[-1])
        path = os.pathsep.join(str(self._root / part) for part in ("compiler", "backends"))
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        process = subprocess.Popen(
            [str(python), "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", *arguments],
            cwd=self._root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=LIMIT_S * len(arguments))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return -signal.SIGKILL, f"no end within {LIMIT_S * len(arguments):g} s"
        return process.returncode, "\n".join(output.splitlines()[-30:])


def _rewrite(path: Path, text: str) -> None:
    """With its compiled modules removed: they are told from the source by size and whole seconds,
    which a fault can leave as they were."""
    path.write_text(text, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()
