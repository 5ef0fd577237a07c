"""Builds one software stack from its lock: an interpreter, a venv, uv, `complete.json`.

`job_software.py` decides when; `lock_text.py` reads the lock, `interpreter.py` finds the Python and
lists what came of it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agentc.program.child import die_with_parent
from agentc.program.job import write_json
from agentc.runtime.machine.process import MARK_VARIABLE, Watchdog, end_marked
from agentc.runtime.software.installer import (
    Installer,
    choose_installer,
    explain_failure,
    refused_build,
    with_local_version,
    without_local_version,
)
from agentc.runtime.software.interpreter import (
    Interpreter,
    InterpreterMissingError,
    find_interpreter,
    list_installed,
    missing_requirements,
    packages_refusing_python,
    versions_of,
)
from agentc.runtime.software.job_software import COMPLETE, SoftwareError
from agentc.runtime.software.lock_text import (
    LockText,
    LockTextError,
    enumerate_names,
    name_of,
    normalised,
    read_lock_text,
    requirements,
)
from agentc.runtime.software.variables import variables_for_builds, variables_for_engine

REQUIREMENTS = "requirements.txt"
Report = Callable[[str], None]
_TOLD = ("Collecting ", "Processing ", "Downloading ", "Building ", "Installing ", "Resolved ",
         "Prepared ", "Installed ")  # fmt: skip
_ROUNDS = 8


def read_demands(lock_text: str) -> LockText:
    """The lock, read, with a hash for all that is to be installed. Raises
    SoftwareError."""
    try:
        lock = read_lock_text(lock_text)
    except LockTextError as error:
        raise SoftwareError(f"its lock cannot be read: {error}") from None
    if lock.unhashed:
        raise SoftwareError(
            f"its lock has no hash for {enumerate_names(lock.unhashed)}\nhelp: `agentc "
            "software hash LOCK` adds them"
        )
    return lock


def parts_of(text: str, lock: LockText) -> list[tuple[bool, str]]:
    """The requirements of a step, those with hashes apart from those that the lock lets through
    without one: pip demands hashes of all or of none. With whether they have hashes."""
    parts = []
    for hashed in (True, False):
        chosen = [
            line for line in requirements(text) if (name_of(line) in lock.unverified) != hashed
        ]
        if chosen:
            parts.append((hashed, "\n".join([*lock.options, *chosen]) + "\n"))
    return parts


def choose_interpreter(lock: LockText) -> Interpreter:
    """The interpreter that the lock demands. Raises SoftwareError."""
    try:
        return find_interpreter(lock.python)
    except InterpreterMissingError as error:
        raise SoftwareError(str(error)) from None


def build(directory: Path, lock_sha256: str, lock_text: str, report: Report) -> dict[str, Any]:
    """Make the stack in `directory`; the caller holds the lock next to it.

    Raises SoftwareError.
    """
    started = time.time()
    lock = read_demands(lock_text)
    interpreter = None if lock.container else choose_interpreter(lock)
    try:
        if directory.exists() or directory.is_symlink():
            report("removing a half-built stack")
            shutil.rmtree(str(directory))
        with _end_forked_children(_mark(directory)):
            if interpreter is None:
                facts = _provide_container(directory, lock, report)
            else:
                facts = _install(directory, lock, lock_text, interpreter, report)
        seconds = time.time() - started
        value = {
            "lock": lock_sha256,
            **facts,
            "built": started,
            "seconds": round(seconds, 2),
            "size": _size_of(directory),
            "host": os.uname().nodename,
        }
        write_json(directory / COMPLETE, value)
    except OSError as error:
        raise SoftwareError(explain_failure([str(error)], directory)) from None
    report(f"software ready after {seconds:.1f} s")
    return value


def _install(
    directory: Path, lock: LockText, lock_text: str, interpreter: Interpreter, report: Report
) -> dict[str, Any]:
    """What `complete.json` says of it: whether nothing is missing, versions, the interpreter."""
    pins = lock.pins()
    python = str(directory / "bin" / "python")
    installer = choose_installer(python, lock) if pins else None
    report(
        f"creating a virtual environment of Python {interpreter.release} for {len(pins)} packages"
    )
    _call([interpreter.path, "-m", "venv", "--without-pip", str(directory)], directory, report)
    complete = True
    if installer is not None:
        (directory / REQUIREMENTS).write_text(lock_text, encoding="utf-8")
        for step in lock.steps:
            words = [] if step.build_isolation else ["--no-build-isolation"]
            for hashed, text in parts_of(step.text, lock):
                more = ["--require-hashes"] if hashed else []
                _install_with(installer, [*words, *more], text, directory, report, step.variables)
        _refuse_other_pythons(python, interpreter, lock, directory)
        if lock.if_asked or not lock.partial:
            complete = _add_lacking(python, installer, lock, directory, report)
    return {
        "python": interpreter.release,
        "interpreter": os.path.realpath(python),
        "versions": versions_of(list_installed(python)) if pins else {},
        "complete": complete,
    }


def _install_with(
    installer: Installer,
    words: list[str],
    text: str,
    directory: Path,
    report: Report,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Install the requirements in `text`. Where uv takes a build with a local part in its version
    (`2.13.0+cpu`), the pin is written so that uv finds its hash, and where the lock does not name
    that build, so that uv leaves it out. All is downloaded before anything is installed, so that a
    second call finds nothing of the first."""
    file = directory / "requirements.part.txt"
    argv = [*installer.install, "--no-deps", *words, "-r", str(file)]
    given = {**installer.variables, **(variables or {})}
    exact: str | None = text
    refused: list[str] = []
    failed: list[str] | None = None
    while exact is not None:
        file.write_text(exact, encoding="utf-8")
        failed = _try(argv, directory, report, given)
        if failed is None:
            file.unlink()
            return
        build = refused_build(failed)
        refused = refused if build is None else failed
        exact = with_local_version(exact, failed) or (
            None if build is None else without_local_version(exact, build)
        )
    # A build that the lock does not name is the reason where there is no other file either.
    raise SoftwareError(explain_failure(refused or failed or [], directory))


def _provide_container(directory: Path, lock: LockText, report: Report) -> dict[str, Any]:
    from agentc.runtime.software.container import ContainerError, describe_image, provide_image

    assert lock.container is not None
    report(f"getting the image {lock.container.source}")
    directory.mkdir(parents=True)
    try:
        command = provide_image(lock.container, directory)
        if command:
            _call(command, directory, report, engine=True)
        return {
            **describe_image(directory, variables_for_engine({})),
            "container": lock.container.source,
            "complete": True,
        }
    except ContainerError as error:
        raise SoftwareError(str(error)) from None


def _add_lacking(
    python: str, installer: Installer, lock: LockText, directory: Path, report: Report
) -> bool:
    """Install what this platform's wheels ask for beyond the pins (CUDA libraries of torch, for
    instance), as far as the lock has it, `# agentc: if-asked`, with hashes and as wheels. Pins that
    contradict each other stay as they are. False when packages are still missing."""
    for _ in range(_ROUNDS):
        missing = _find_lacking(python, lock)
        if not missing:
            return True
        names = [name for name in missing if name in lock.if_asked]
        if not names:
            asked = enumerate_names(list(missing.values()))
            report(f"its packages ask for {asked}, which the lock does not name")
            return False
        report(f"this platform's packages ask for {', '.join(names)} too")
        chosen = [lock.if_asked[name] for name in names]
        text = "\n".join([*lock.options, *chosen]) + "\n"
        words = ["--only-binary", ":all:", "--require-hashes"]
        _install_with(installer, words, text, directory, report)
    return not _find_lacking(python, lock)


def _find_lacking(python: str, lock: LockText) -> dict[str, str]:
    """What installed packages ask for and is not there. A partial lock is asked for nothing beyond
    what it has below `if-asked`."""
    found = missing_requirements(list_installed(python))
    if lock.partial:
        return {name: text for name, text in found.items() if name in lock.if_asked}
    return {name: text for name, text in found.items() if name not in lock.without}


def _refuse_other_pythons(
    python: str, interpreter: Interpreter, lock: LockText, directory: Path
) -> None:
    """uv heeds only the least Python that a package takes: one that is too new is refused here,
    but for the packages of steps with `--ignore-requires-python`."""
    overruled = {
        name_of(line)
        for step in lock.steps
        if step.ignore_requires_python
        for line in requirements(step.text)
    }
    for name, demand in packages_refusing_python(list_installed(python)):
        if normalised(name) in overruled:
            continue
        problem = (
            f"package {name} requires a different python: {interpreter.release} not in '{demand}'"
        )
        raise SoftwareError(explain_failure([problem], directory))


def _mark(directory: Path) -> str:
    return f"software/{directory.name}/{os.getpid()}"


@contextmanager
def _end_forked_children(mark: str) -> Iterator[None]:
    """End what pip and compilers have forked when this process is killed, or gives up. The
    watchdog keeps the lock until then, so that the next builder is alone in the folder."""
    watchdog = Watchdog(mark)
    try:
        yield
    finally:
        end_marked(mark)
        watchdog.dismiss()
        with suppress(ChildProcessError):
            os.waitpid(watchdog.pid, 0)


def _size_of(directory: Path) -> int:
    """Bytes of all files, so that lists of stacks need not look at each."""
    found = os.walk(str(directory))
    files = (folder + os.sep + name for folder, _, names in found for name in names)
    return sum(os.lstat(file).st_size for file in files)


def _call(argv: list[str], directory: Path, report: Report, engine: bool = False) -> None:
    failed = _try(argv, directory, report, engine=engine)
    if failed is not None:
        raise SoftwareError(explain_failure(failed, directory))


def _try(
    argv: list[str],
    directory: Path,
    report: Report,
    variables: Mapping[str, str] | None = None,
    engine: bool = False,
) -> list[str] | None:
    """None when it succeeds, else the lines that it wrote."""
    me = os.getpid()
    choose = variables_for_engine if engine else variables_for_builds
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=choose({**(variables or {}), MARK_VARIABLE: _mark(directory)}),
        preexec_fn=lambda: die_with_parent(signal.SIGKILL, me),
    )
    assert process.stdout is not None
    lines: list[str] = []
    for raw in process.stdout:
        line = raw.decode("utf-8", "replace").rstrip()
        lines.append(line)
        if line.lstrip().startswith(_TOLD):
            line = line.strip()
            report(line if len(line) < 100 else line[:97] + "...")
    return None if process.wait() == 0 else lines
