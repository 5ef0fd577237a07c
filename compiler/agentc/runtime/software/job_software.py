"""Software stacks: built once from a lock, shared by hash, never used half-built.

`installation.py` builds them. Also the environment variables that job programs see, and the link
directory that is their PYTHONPATH.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agentc.program import process_start
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.software.variables import (
    JobVariablesError,
    declare_secrets,
    inherited_variables,
)
from agentc.runtime.store.file_system import explain_start
from agentc.runtime.store.layout import StoreLayout

COMPLETE = "complete.json"
IMAGE = "image.sif"
"""The image of a stack that is a container, or a link to it."""
_BACKENDS = "agentc_backends"


class SoftwareError(Exception):
    """The stack cannot be built or used; the message says why, and what may help."""


def read_complete(directory: Path) -> dict[str, Any] | None:
    """What is known of a finished stack, or None when it is not finished, or when the
    interpreter that it was made with is gone."""
    value = read_record(directory)
    if value is None:
        return None
    runs = directory / (IMAGE if value.get("container") else "bin/python")
    # Not Path.exists: it raises where this user may not look into the interpreter's folder.
    return value if os.access(str(runs), os.F_OK) else None


def read_record(directory: Path) -> dict[str, Any] | None:
    """`complete.json` of a stack, whether it can still be used or not."""
    try:
        value: dict[str, Any] = json.loads((directory / COMPLETE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value


def python_command(
    directory: Path,
    record: Mapping[str, Any],
    store: Path | None = None,
    code: Path | None = None,
) -> list[str]:
    """The words that start the stack's Python. `record` is its `complete.json`; a container
    is shown the store and what the code directory links to. Raises SoftwareError."""
    if not record.get("container"):
        return [str(directory / "bin" / "python")]
    from agentc.runtime.software.container import ContainerError, exec_command, folders_to_bind

    try:
        binds = [] if store is None or code is None else folders_to_bind(store, code)
        return exec_command(directory / IMAGE, binds)
    except ContainerError as error:
        raise SoftwareError(str(error)) from None


def programs_of(directory: Path, record: Mapping[str, Any]) -> Path | None:
    """The stack's folder where its `bin` belongs on PATH: not for a container, which has a
    PATH of its own."""
    return None if record.get("container") else directory


def ensure_software(
    layout: StoreLayout,
    lock_sha256: str,
    lock_text: str,
    report: Callable[[str], None] = lambda line: None,
) -> tuple[Path, dict[str, Any]]:
    """The directory of the stack and its `complete.json`; built when it is not there yet.

    Safe against concurrent builders and against builders that were killed. `report` receives
    lines of progress. Raises SoftwareError.
    """
    directory = layout.software_stack(lock_sha256)
    known = read_complete(directory)
    if known is not None:
        with suppress(OSError):  # its time tells when it was last used; it may be somebody else's
            os.utime(str(directory / COMPLETE))
        return directory, known
    found = lock_digest(lock_text)
    if found != lock_sha256:
        raise SoftwareError(
            f"the lock file has the digest {found[:16]}, the plan says {lock_sha256[:16]}; "
            "compile the spec again"
        )
    from agentc.runtime.software.installation import build

    _refuse_interpreter(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(directory.with_name(directory.name + ".lock"), report):
            known = read_complete(directory)
            if known is None:
                _refuse_to_replace(directory)
                known = build(directory, lock_sha256, lock_text, report)
    except OSError as error:
        raise SoftwareError(
            f"{directory.parent} cannot be written to ({error.strerror}); export "
            "AGENTC_SOFTWARE=/a/folder/of/yours"
        ) from None
    return directory, known


def _refuse_interpreter(directory: Path) -> None:
    """A whole stack whose interpreter this user may not reach serves other users: it is not
    built again in their place."""
    if read_record(directory) is None:
        return
    try:
        (directory / "bin" / "python").stat()
    except PermissionError as error:
        raise SoftwareError(explain_start(error) or str(error)) from None
    except OSError:
        return


def _refuse_to_replace(directory: Path) -> None:
    """A whole stack whose interpreter is missing here may be in use on the machine that it
    was built on; where that is this machine, the interpreter was removed and it is useless."""
    known = read_record(directory)
    if known is not None and known.get("host") not in (None, os.uname().nodename):
        raise SoftwareError(
            f"{directory} was built on {known['host']} with "
            f"{known.get('interpreter') or 'a Python'}, which this machine does not have. Install "
            "that Python here, or give this machine a folder of its own: "
            "export AGENTC_SOFTWARE=/elsewhere"
        )


def _require_modules(package: str, modules: Iterable[str], folders: Iterable[str]) -> None:
    """Raises SoftwareError for a module of the package that is in none of its folders:
    another version of it made the plan."""
    for module in modules:
        top, _, inside = module.partition(".")
        if top != package or not inside:
            continue
        place = inside.replace(".", "/")
        if not any(
            Path(folder, f"{place}{end}").is_file() for folder in folders for end in _MODULE_ENDS
        ):
            raise SoftwareError(
                f"the plan starts the program {module}, which the installed {package} lacks; if "
                "another version of it made the plan, compile the spec again"
            )


_MODULE_ENDS = (".py", "/__main__.py", "/__init__.py")


def code_directory(
    layout: StoreLayout,
    modules: Iterable[str],
    brought: Mapping[str, Mapping[str, str]] | None = None,
) -> Path:
    """A directory of links to the packages that programs need (`packages_of`), found the way this
    interpreter finds them, and to `process_start.py`, which Python runs first. Those that are
    `brought` by a plan are written from its text. Raises SoftwareError for a package
    that is not installed here, or has no such module."""
    modules = [*modules]
    places: list[tuple[str, str]] = []
    texts: dict[str, str] = {}
    for name in packages_of(modules):
        if brought and name in brought:
            texts.update(brought[name])
            continue
        found = importlib.util.find_spec(name)
        if found is None or not (found.submodule_search_locations or found.origin):
            raise SoftwareError(
                f"the Python package {name} is needed by a job and is not installed beside agentc"
            )
        _require_modules(name, modules, found.submodule_search_locations or [])
        origin = str(found.origin)
        if not found.submodule_search_locations:
            places.append((Path(origin).name, os.path.realpath(origin)))
        elif found.origin is not None:
            folder = next(iter(found.submodule_search_locations))
            places.append((name, os.path.realpath(folder)))
        else:  # a namespace package: several distributions have a part of it
            for folder in found.submodule_search_locations:
                for part in sorted(Path(folder).iterdir()):
                    places.append((name + "/" + part.name, os.path.realpath(str(part))))
    places.append(("sitecustomize.py", os.path.realpath(process_start.__file__)))
    whole = [places, sorted(texts.items())] if texts else places
    digest = hashlib.sha256(json.dumps(whole).encode("utf-8")).hexdigest()[:16]
    directory = layout.code / digest
    if not directory.is_dir():
        draft = layout.code / (f"{digest}.{os.getpid()}.tmp")
        shutil.rmtree(str(draft), ignore_errors=True)
        draft.mkdir(parents=True)
        for name, place in places:
            link = draft / name
            link.parent.mkdir(exist_ok=True)
            if not link.is_symlink():  # the part that Python would find comes first
                link.symlink_to(place)
        for name, text in texts.items():
            file = draft / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("utf-8"))
        try:
            draft.rename(directory)
        except OSError:  # another wrapper was first
            shutil.rmtree(str(draft), ignore_errors=True)
    return directory


JOB_PACKAGES = ("kinds", "program", "runtime")
JOB_MODULES = (
    *("__init__.py", "lease_roles.py", "result_tables.py"),
    *("graph/__init__.py", "graph/layers.py", "graph/layout.py"),
)
"""What wrappers and programs of jobs import of agentc, in its folder."""


def packages_of(modules: Iterable[str]) -> list[str]:
    """Top-level packages that programs need: agentc itself with its backends, which those of other
    distributions may build on, and those of the programs' own modules."""
    found = {"agentc", *(module.split(".")[0] for module in modules if module)}
    if importlib.util.find_spec(_BACKENDS) is not None:
        found.add(_BACKENDS)
    return sorted(found)


def job_variables(
    code: Path,
    cpus: int,
    network: bool,
    secrets: Mapping[str, str],
    software: Path | None = None,
) -> dict[str, str]:
    """All environment variables of a job program: what is inherited (`variables.py`; no secret),
    the code directory, thread counts, and its own secrets by value (never written anywhere). Raises
    SoftwareError for a wrong AGENTC_JOB_VARIABLES.

    `software` is the directory of its software stack; the programs of that come first on
    PATH, so that a library which calls `python`, `torchrun` or `ninja` by name gets its own.
    """
    try:
        variables = inherited_variables(os.environ, network=network)
    except JobVariablesError as error:
        raise SoftwareError(str(error)) from None
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
        # Threads that wait leave their core to others: spinning made a training of two threads four
        # times slower where something else ran beside it.
        OMP_WAIT_POLICY="PASSIVE",
        MKL_DYNAMIC="FALSE",
        MKL_CBWR="AUTO",
        TOKENIZERS_PARALLELISM="false",
        HF_HUB_DISABLE_TELEMETRY="1",
        DO_NOT_TRACK="1",
    )
    if not network:
        variables["HF_HUB_OFFLINE"] = "1"
    if software is not None:
        variables["VIRTUAL_ENV"] = str(software)
        variables["PATH"] = os.pathsep.join(
            part for part in (str(software / "bin"), variables.get("PATH")) if part
        )
    variables.update(secrets)
    return variables


def resolve_secrets(wanted: Mapping[str, str], *, sent: bool = False) -> dict[str, str]:
    """Environment variable -> value, for a mapping of variables to names of secrets, which are
    variables of this process; `sent` are those that requests carry in a header. Raises
    SoftwareError naming the first that is not set, or cannot be sent."""
    found = {}
    declare_secrets(wanted.values())
    for variable, name in wanted.items():
        value = os.environ.get(name)
        if not value:
            raise SoftwareError(
                f"the secret {name} is not set; export {name}=... in the shell that runs agentc"
            )
        trouble = trouble_of_secret(value, sent=sent)
        if trouble is not None:
            raise SoftwareError(f"the secret {name} {trouble}")
        found[variable] = value
    return found


def trouble_of_secret(value: str, *, sent: bool) -> str | None:
    """Why a secret cannot be what was meant, in words that do not show it, or None. HTTP clients
    refuse such a header late, and quote it."""
    how = '; export it again without that, as `export NAME="$(cat FILE)"` does'
    if value != value.strip("\r\n") and len(value.strip().splitlines()) < 2:
        return "begins or ends with a line break" + how
    if sent and re.search(r"[\x00-\x1f\x7f]", value):
        return "has a line break or another control character in it, and goes into a header" + how
    return None


@contextmanager
def _exclusive(path: Path, report: Callable[[str], None]) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            report("another process builds this stack; waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
