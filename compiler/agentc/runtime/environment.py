"""Software environments: built once from a lock, shared by hash, never used half-built.

Also the environment variables that job programs see, and the link directory that is their
PYTHONPATH.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from agentc.runtime.layout import StoreLayout
from agentc.runtime.process import die_with_parent
from agentc.runtime.program import write_json

COMPLETE = "complete.json"
_INHERITED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
    "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "AGENTC_SPEC_DIR", "JAVA_HOME",
)  # fmt: skip
_INHERITED_PREFIXES = ("CUDA_", "NVIDIA_", "NCCL_", "ROCR_", "HIP_", "SLURM_", "GLOO_")
_PIN = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:==|@)")
_MISSING = re.compile(r"requires .*, which is not installed")
_PARTIAL = re.compile(r"^#\s*agentc:\s*partial\b", re.MULTILINE)


class SoftwareEnvironmentError(Exception):
    """The environment cannot be built; the message ends with pip's last lines."""


def read_complete(directory: Path) -> Optional[Dict[str, Any]]:
    """What is known of a finished environment, or None when it is not finished."""
    try:
        value: Dict[str, Any] = json.loads((directory / COMPLETE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if (directory / "bin" / "python").exists() else None


def ensure_environment(
    layout: StoreLayout,
    lock_sha256: str,
    lock_text: str,
    report: Callable[[str], None] = lambda line: None,
) -> Tuple[Path, Dict[str, Any]]:
    """The directory of the environment and its `complete.json`; built when it is not there yet.

    Safe against concurrent builders and against builders that were killed. `report` receives
    lines of progress. Raises SoftwareEnvironmentError.
    """
    directory = layout.environment(lock_sha256)
    known = read_complete(directory)
    if known is not None:
        return directory, known
    found = hashlib.sha256(lock_text.encode("utf-8")).hexdigest()
    if found != lock_sha256:
        raise SoftwareEnvironmentError(
            "the lock file has sha256 %s, the plan says %s; compile the spec again"
            % (found[:16], lock_sha256[:16])
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive(directory.with_name(directory.name + ".lock"), report):
        known = read_complete(directory)
        if known is None:
            known = _build(directory, lock_sha256, lock_text, report)
    return directory, known


def code_directory(layout: StoreLayout, packages: Iterable[str]) -> Path:
    """A directory of links to the given top-level packages, found the way this interpreter finds
    them. Raises SoftwareEnvironmentError for a package that is not installed here."""
    places: List[Tuple[str, str]] = []
    for name in sorted(set(packages)):
        found = importlib.util.find_spec(name)
        if found is None or not (found.submodule_search_locations or found.origin):
            raise SoftwareEnvironmentError(
                "the Python package %s is needed by a job and is not installed beside agentc" % name
            )
        if found.submodule_search_locations:
            place = next(iter(found.submodule_search_locations))
        else:
            place = str(found.origin)
        places.append((name, os.path.realpath(place)))
    digest = hashlib.sha256(json.dumps(places).encode("utf-8")).hexdigest()[:16]
    directory = layout.code / digest
    if not directory.is_dir():
        draft = layout.code / ("%s.%d.tmp" % (digest, os.getpid()))
        shutil.rmtree(str(draft), ignore_errors=True)
        draft.mkdir(parents=True)
        for name, place in places:
            file = Path(place)
            (draft / (name if file.is_dir() else file.name)).symlink_to(file)
        try:
            draft.rename(directory)
        except OSError:  # another wrapper was first
            shutil.rmtree(str(draft), ignore_errors=True)
    return directory


def packages_of(programs: Iterable[List[str]]) -> List[str]:
    """Top-level packages that job programs need: agentc itself, and what `-m` names."""
    found = {"agentc"}
    for program in programs:
        if len(program) > 1 and program[0] == "-m":
            found.add(program[1].split(".")[0])
    return sorted(found)


def job_variables(
    code: Path, cpus: int, network: bool, secrets: Mapping[str, str]
) -> Dict[str, str]:
    """The whole environment of a job program: a short list of what is inherited, the code
    directory, thread counts, and secrets by value (never written anywhere)."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
    }
    threads = str(max(1, cpus))
    variables.update(
        PYTHONPATH=str(code),
        PYTHONNOUSERSITE="1",
        PYTHONSAFEPATH="1",
        PYTHONUNBUFFERED="1",
        PYTHONHASHSEED="0",
        PYTHONUTF8="1",
        OMP_NUM_THREADS=threads,
        MKL_NUM_THREADS=threads,
        OPENBLAS_NUM_THREADS=threads,
        # Same bits in every run: no thread less when the machine is busy, and sums in an order that
        # does not depend on where an array happens to lie in memory.
        OMP_DYNAMIC="FALSE",
        MKL_DYNAMIC="FALSE",
        MKL_CBWR="AUTO",
        TOKENIZERS_PARALLELISM="false",
        HF_HUB_DISABLE_TELEMETRY="1",
        DO_NOT_TRACK="1",
    )
    if not network:
        variables["HF_HUB_OFFLINE"] = "1"
    variables.update(secrets)
    return variables


def resolve_secrets(wanted: Mapping[str, str]) -> Dict[str, str]:
    """Environment variable -> value, for a mapping of variables to names of secrets, which are
    variables of this process. Raises SoftwareEnvironmentError naming the first that is not set."""
    found = {}
    for variable, name in wanted.items():
        value = os.environ.get(name)
        if not value:
            raise SoftwareEnvironmentError(
                "the secret %s is not set; export %s=... in the shell that runs agentc"
                % (name, name)
            )
        found[variable] = value
    return found


def _build(
    directory: Path, lock_sha256: str, lock_text: str, report: Callable[[str], None]
) -> Dict[str, Any]:
    started = time.time()
    if directory.exists() or directory.is_symlink():
        report("removing a half-built environment")
        shutil.rmtree(str(directory))
    pins = [line for line in lock_text.splitlines() if _PIN.match(line)]
    # An environment without pip of its own is made 3 s faster; this interpreter's pip can install
    # into it, when there is one.
    own_pip = _can_install_elsewhere()
    report("creating a Python environment for %d packages" % len(pins))
    options = ["--without-pip"] if own_pip else []
    _call([sys.executable, "-m", "venv", *options, str(directory)], report)
    python = str(directory / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python] if own_pip else [python, "-m", "pip"]
    complete = True
    if pins:
        lock = directory / "requirements.txt"
        lock.write_text(lock_text, encoding="utf-8")
        options = ["--no-input", "--progress-bar", "off", "--disable-pip-version-check"]
        install = [*pip, "install", *options]
        # The lock names every package: resolving again could only add what it does not pin.
        _call([*install, "--no-deps", "-r", str(lock)], report)
        if not _PARTIAL.search(lock_text):
            complete = _add_missing(pip, install, lock, report)
    versions = _versions(pip) if pins else {}
    seconds = time.time() - started
    value = {
        "lock": lock_sha256,
        "python": sys.version.split()[0],
        "versions": versions,
        "complete": complete,
        "built": started,
        "seconds": round(seconds, 2),
    }
    write_json(directory / COMPLETE, value)
    report("environment ready after %.1f s" % seconds)
    return value


def _can_install_elsewhere() -> bool:
    """Whether this interpreter has a pip with `--python` (22.3 or newer)."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        major, minor = version("pip").split(".")[:2]
    except PackageNotFoundError:
        return False
    return (int(major), int(minor)) >= (22, 3)


def _add_missing(
    pip: List[str], install: List[str], lock: Path, report: Callable[[str], None]
) -> bool:
    """Install what this platform's wheels need beyond the lock, which was made on another one
    (CUDA libraries of torch, for instance). False when packages are still missing."""
    if not _missing(pip):
        return True
    report("this platform's packages need more than the lock names; adding it")
    try:
        _call([*install, "-r", str(lock)], report)
    except SoftwareEnvironmentError as error:
        report(str(error).splitlines()[-1])
    return not _missing(pip)


def _missing(pip: List[str]) -> List[str]:
    done = subprocess.run(
        [*pip, "check"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [line for line in lines if _MISSING.search(line)]


def _versions(pip: List[str]) -> Dict[str, str]:
    done = subprocess.run(
        [*pip, "list", "--format", "json", "--disable-pip-version-check"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    listed = json.loads(done.stdout.decode("utf-8"))
    return {entry["name"]: entry["version"] for entry in listed if entry["name"] != "pip"}


def _call(argv: List[str], report: Callable[[str], None]) -> None:
    me = os.getpid()
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: die_with_parent(signal.SIGKILL, me),
    )
    assert process.stdout is not None
    lines: List[str] = []
    for raw in process.stdout:
        line = raw.decode("utf-8", "replace").rstrip()
        lines.append(line)
        if line.startswith(("Collecting ", "Processing ", "Downloading ", "Installing ")):
            report(line if len(line) < 100 else line[:97] + "...")
    if process.wait() != 0:
        raise SoftwareEnvironmentError(
            "%s failed:\n%s" % (" ".join(argv[:4]), "\n".join(lines[-20:]))
        )


@contextmanager
def _exclusive(path: Path, report: Callable[[str], None]) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            report("another process builds this environment; waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
