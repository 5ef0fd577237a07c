"""Builds one software environment from its lock: an interpreter, a venv, pip, `complete.json`.

`environment.py` decides when; `lock_text.py` reads the lock, `interpreter.py` finds the Python.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from agentc.runtime.build_variables import variables_for_engine, variables_for_pip
from agentc.runtime.environment import COMPLETE, SoftwareEnvironmentError
from agentc.runtime.install_failure import explain_failure
from agentc.runtime.interpreter import Interpreter, InterpreterMissingError, find_interpreter
from agentc.runtime.lock_text import LockText, LockTextError, meets, normalised, read_lock_text
from agentc.runtime.process import MARK_VARIABLE, Watchdog, die_with_parent, end_marked
from agentc.runtime.program import write_json

REQUIREMENTS = "requirements.txt"
Report = Callable[[str], None]
_TOLD = ("Collecting ", "Processing ", "Downloading ", "Building ", "Installing ")
_CLAUSE = re.compile(r"(>=|<=|==|!=|<|>)\s*(\d+)\.(\d+)")
_ROUNDS = 8
_MOST_ADDED = 64
"""Packages beyond the lock: some twenty libraries of CUDA are the most that is known."""
# Every requirement of an installed distribution that is not installed: lists of name, requirement.
_FIND_LACKING = """\
import json, re, sys
from importlib.metadata import distributions
found = list(distributions())
sys.path.append(sys.argv[1])
from pip._vendor.packaging.requirements import Requirement
plain = lambda name: re.sub(r"[-_.]+", "-", name).lower()
there = {plain(each.metadata["Name"]): each for each in found}
extras = {name: {""} for name in there}
lacking = {}
todo = list(there)
while todo:
    name = todo.pop()
    for text in there[name].requires or ():
        wanted = Requirement(text)
        marker, wanted.marker = wanted.marker, None
        if marker is not None and not any(marker.evaluate({"extra": e}) for e in extras[name]):
            continue
        other = plain(wanted.name)
        if other not in there:
            # An address is not for a package to choose: the lock names those.
            wanted.url = None
            lacking[str(wanted)] = other
        elif not wanted.extras <= extras[other]:
            extras[other] |= wanted.extras
            todo.append(other)
print(json.dumps([[name, text] for text, name in lacking.items()]))
"""


def read_demands(lock_text: str) -> LockText:
    """The lock, read. Raises SoftwareEnvironmentError."""
    try:
        return read_lock_text(lock_text)
    except LockTextError as error:
        raise SoftwareEnvironmentError("its lock cannot be read: %s" % error) from None


def choose_interpreter(lock: LockText) -> Interpreter:
    """The interpreter that the lock demands. Raises SoftwareEnvironmentError."""
    try:
        return find_interpreter(lock.python)
    except InterpreterMissingError as error:
        raise SoftwareEnvironmentError(str(error)) from None


def build(directory: Path, lock_sha256: str, lock_text: str, report: Report) -> Dict[str, Any]:
    """Make the environment in `directory`; whoever calls it holds the lock beside it.

    Raises SoftwareEnvironmentError.
    """
    started = time.time()
    lock = read_demands(lock_text)
    interpreter = None if lock.container else choose_interpreter(lock)
    try:
        if directory.exists() or directory.is_symlink():
            report("removing a half-built environment")
            shutil.rmtree(str(directory))
        with _no_one_left_behind(_mark(directory)):
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
        raise SoftwareEnvironmentError(explain_failure([str(error)], directory)) from None
    report("environment ready after %.1f s" % seconds)
    return value


def _install(
    directory: Path, lock: LockText, lock_text: str, interpreter: Interpreter, report: Report
) -> Dict[str, Any]:
    """What `complete.json` says of it: whether nothing is missing, versions, the interpreter."""
    pins = lock.pins()
    # An environment without pip of its own is made 3 s faster; this interpreter's pip can install
    # into it, when it is one that knows how and that still runs on that Python.
    borrowed = _own_pip_serves(interpreter)
    report("creating a Python %s environment for %d packages" % (interpreter.release, len(pins)))
    options = ["--without-pip"] if borrowed else []
    _call([interpreter.path, "-m", "venv", *options, str(directory)], directory, report)
    python = str(directory / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python] if borrowed else [python, "-m", "pip"]
    complete = True
    if pins:
        (directory / REQUIREMENTS).write_text(lock_text, encoding="utf-8")
        if not borrowed:
            # Before 3.12 a new environment also brings a setuptools that no lock has pinned.
            _call([*pip, "uninstall", "--yes", "--quiet", "setuptools"], directory, report)
        install = [*pip, "install", "--no-input", "--progress-bar", "off"]
        for number, step in enumerate(lock.steps):
            words = [] if step.build_isolation else ["--no-build-isolation"]
            words += ["--ignore-requires-python"] if step.ignore_requires_python else []
            file = directory / ("requirements.%d.txt" % number)
            file.write_text(step.text, encoding="utf-8")
            # The lock names every package: resolving again could only add what it does not pin.
            argv = [*install, "--no-deps", *words, "-r", str(file)]
            _call(argv, directory, report, step.variables)
            file.unlink()
        if not lock.partial:
            complete = _add_lacking(python, install, lock, directory, report)
    return {
        "python": interpreter.release,
        "interpreter": os.path.realpath(python),
        "versions": _versions(pip) if pins else {},
        "complete": complete,
    }


def _provide_container(directory: Path, lock: LockText, report: Report) -> Dict[str, Any]:
    from agentc.runtime.container import ContainerError, describe_image, provide_image

    assert lock.container is not None
    report("getting the image %s" % lock.container.source)
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
        raise SoftwareEnvironmentError(str(error)) from None


def _own_pip_serves(interpreter: Interpreter) -> bool:
    """Whether this interpreter has a pip that takes `--python` (22.3 or newer), and that runs on
    that interpreter, which it is started with."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        found = metadata("pip")
    except PackageNotFoundError:
        return False
    numbers = re.findall(r"\d+", str(found["Version"]))[:2]
    if tuple(map(int, numbers)) < (22, 3):
        return False
    clauses = _CLAUSE.findall(str(found["Requires-Python"] or ""))
    demand = ",".join("%s%s.%s" % clause for clause in clauses)
    return not demand or meets(demand, interpreter.version)


def _add_lacking(
    python: str, install: List[str], lock: LockText, directory: Path, report: Report
) -> bool:
    """Install what this platform's wheels need beyond the lock, which was made on another one
    (CUDA libraries of torch, for instance), except what it leaves out on purpose. Pins that
    contradict each other stay as they are. False when packages are still missing.

    Nobody has looked at what is added: it comes from the lock's indexes, by name, as wheels, whose
    installation runs no code of theirs."""
    file = directory / "requirements.more.txt"
    added = 0
    for _ in range(_ROUNDS):
        lacking = _find_lacking(python, lock)
        if not lacking:
            return True
        added += len(lacking)
        if added > _MOST_ADDED:
            report("its packages need %d more than the lock names; none is added" % added)
            return False
        report(
            "this platform's packages need more than the lock names; adding %s" % ", ".join(lacking)
        )
        file.write_text("\n".join([*lock.options, *lacking]) + "\n", encoding="utf-8")
        try:
            words = ["--no-deps", "--only-binary", ":all:", "-r", str(file)]
            _call([*install, *words], directory, report)
        except SoftwareEnvironmentError as error:
            report(str(error).splitlines()[0])
            return False
        finally:
            file.unlink()
    return not _find_lacking(python, lock)


def _find_lacking(python: str, lock: LockText) -> List[str]:
    import importlib.util

    pip = importlib.util.find_spec("pip")
    beside = str(Path(str(pip.origin)).parent.parent) if pip is not None and pip.origin else ""
    done = subprocess.run(
        [python, "-c", _FIND_LACKING, beside],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables_for_pip({}),
        check=False,
    )
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise SoftwareEnvironmentError("its packages cannot be listed: %s" % " ".join(words))
    listed = json.loads(done.stdout.decode("utf-8"))
    return sorted({text for name, text in listed if normalised(name) not in lock.without})


def _versions(pip: List[str]) -> Dict[str, str]:
    done = subprocess.run(
        [*pip, "list", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=variables_for_pip({}),
        check=True,
    )
    listed = json.loads(done.stdout.decode("utf-8"))
    return {entry["name"]: entry["version"] for entry in listed if entry["name"] != "pip"}


def _mark(directory: Path) -> str:
    return "environment/%s/%d" % (directory.name, os.getpid())


@contextmanager
def _no_one_left_behind(mark: str) -> Iterator[None]:
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
    """Bytes of all files, so that lists of environments need not look at each."""
    found = os.walk(str(directory))
    files = (folder + os.sep + name for folder, _, names in found for name in names)
    return sum(os.lstat(file).st_size for file in files)


def _call(
    argv: List[str],
    directory: Path,
    report: Report,
    variables: Optional[Mapping[str, str]] = None,
    engine: bool = False,
) -> None:
    me = os.getpid()
    choose = variables_for_engine if engine else variables_for_pip
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=choose({**(variables or {}), MARK_VARIABLE: _mark(directory)}),
        preexec_fn=lambda: die_with_parent(signal.SIGKILL, me),
    )
    assert process.stdout is not None
    lines: List[str] = []
    for raw in process.stdout:
        line = raw.decode("utf-8", "replace").rstrip()
        lines.append(line)
        if line.lstrip().startswith(_TOLD):
            line = line.strip()
            report(line if len(line) < 100 else line[:97] + "...")
    if process.wait() != 0:
        raise SoftwareEnvironmentError(explain_failure(lines, directory))
