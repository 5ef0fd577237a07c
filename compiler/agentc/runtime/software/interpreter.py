"""The Python of a software stack: the interpreter that it demands, the packages that are
installed, what they lack, and which of them refuse that Python.

Interpreters are looked for in the order of `candidates`; each is started once, since a name on PATH
may be a shim that starts nothing (pyenv) and a folder may hold half an installation. Packages are
listed by the stack's own Python, and their requirements read here.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from agentc.runtime.software.job_software import SoftwareError
from agentc.runtime.software.lock_text import meets, normalised
from agentc.runtime.software.variables import variables_for_builds

VARIABLE = "AGENTC_PYTHON_%d_%d"
"""Environment variable that names the interpreter of a minor version."""
OLDEST, NEWEST = (3, 8), (3, 15)
_PROBE_S = 20.0
_PROBE = (
    "import json, platform, sys\n"
    "from importlib.util import find_spec as f\n"
    "print(json.dumps([list(sys.version_info[:2]), platform.python_version(),"
    " platform.python_implementation(), bool(f('venv'))]))"
)


class Interpreter(NamedTuple):
    """A Python that works. `version` is (major, minor), `release` the whole of it."""

    path: str
    version: tuple[int, int]
    release: str


class InterpreterMissingError(Exception):
    """No interpreter meets the demand. `looked` says where it was looked for, `remedy` how to get
    one; as text all of it, a line each."""

    def __init__(self, what: str, looked: Sequence[str] = (), remedy: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.looked = tuple(looked)
        self.remedy = tuple(remedy)

    def __str__(self) -> str:
        return "\n".join([str(self.args[0]), *self.looked, *self.remedy])


def find_interpreter(demand: str | None, environ: Mapping[str, str] | None = None) -> Interpreter:
    """The interpreter for a demand (`3.10`, `>=3.8,<3.11`); for None the one that runs this.

    Of several minor versions the one of this process is taken, else the newest. Raises
    InterpreterMissingError.
    """
    variables = os.environ if environ is None else environ
    own = sys.version_info[:2]
    if demand is None or (meets(demand, own) and not variables.get(VARIABLE % own)):
        return Interpreter(sys.executable, own, sys.version.split()[0])
    tried: list[str] = []
    for version in _versions(demand):
        for path, why in candidates(version, variables):
            found = probe(path)
            if isinstance(found, Interpreter) and found.version == version:
                return found
            problem = found if isinstance(found, str) else "it is Python " + found.release
            tried.append(f"{path}: {problem}")
            if why:  # who names one wants that one, or a word about it
                raise InterpreterMissingError(
                    "%s names %s, which is no Python %d.%d: %s" % (why, path, *version, problem)
                )
    raise _missing(demand, tried, variables)


def candidates(
    version: tuple[int, int], environ: Mapping[str, str]
) -> Iterator[tuple[str, str | None]]:
    """Paths that may be an interpreter of that version, each with the variable that names it."""
    named = environ.get(VARIABLE % version)
    if named:
        yield named, VARIABLE % version
        return
    name = "python%d.%d" % version
    seen = set()
    folders = [Path(part) for part in environ.get("PATH", "").split(os.pathsep) if part]
    for folder in [*folders, *installation_folders(version, environ)]:
        path = folder / name
        if path.is_file() and os.access(str(path), os.X_OK):
            real = os.path.realpath(str(path))
            if real not in seen:
                seen.add(real)
                yield str(path), None


def installation_folders(version: tuple[int, int], environ: Mapping[str, str]) -> list[Path]:
    """Folders besides PATH where pyenv, uv, conda, asdf, mise and systems put interpreters; of
    several patch releases the newest first."""
    home = Path(environ.get("HOME") or "/nonexistent")
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    minor = "%d.%d" % version
    patterns = [
        (Path(environ.get("PYENV_ROOT") or home / ".pyenv") / "versions", minor + ".*"),
        (
            Path(environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python"),
            f"cpython-{minor}.*",
        ),
        (
            Path(environ.get("ASDF_DATA_DIR") or home / ".asdf") / "installs" / "python",
            minor + ".*",
        ),
        (
            Path(environ.get("MISE_DATA_DIR") or data / "mise") / "installs" / "python",
            minor + ".*",
        ),
        (Path("/opt/python"), minor + "*"),
    ]
    found: list[Path] = []
    for root, pattern in patterns:
        found += [path / "bin" for path in sorted(root.glob(pattern), key=_release, reverse=True)]
    for root in _conda_roots(home, environ):
        found += [root / "bin", *sorted(root.glob("envs/*/bin"))]
    found.append(Path("/Library/Frameworks/Python.framework/Versions") / minor / "bin")
    return found + [Path(p) for p in ("/usr/local/bin", "/usr/bin", "/opt/homebrew/bin")]


@cache
def probe(path: str) -> Interpreter | str:
    """Start it and ask; or, in words, why it cannot be used."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME", "PYENV_VERSION", "__PYVENV_LAUNCHER__")
    }
    try:
        done = subprocess.run(
            [path, "-I", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=variables,
            timeout=_PROBE_S,
            check=False,
        )
        version, release, implementation, venv = json.loads(done.stdout.decode("utf-8"))
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it cannot be started ({error})"
    except ValueError:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return "it does not work" + (f" ({lines[0]})" if lines else "")
    if implementation != "CPython":
        return f"it is {implementation}, and CPython is needed"
    if not venv:
        return "it has no module venv (on Debian and Ubuntu: apt install python%d.%d-venv)" % (
            version[0],
            version[1],
        )
    return Interpreter(path, (version[0], version[1]), release)


def _versions(demand: str | None) -> list[tuple[int, int]]:
    own = sys.version_info[:2]
    known = [(3, minor) for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    known.sort(key=lambda version: version != own)
    return [version for version in known if demand is None or meets(demand, version)]


def _missing(
    demand: str | None, tried: list[str], environ: Mapping[str, str]
) -> InterpreterMissingError:
    versions = _versions(demand)
    if not versions:
        text = "no Python meets `%s`: software is of Python %d.%d and newer"
        return InterpreterMissingError(text % (demand, *OLDEST))
    wanted = "%d.%d" % versions[0]
    names = " or ".join("python%d.%d" % version for version in sorted(versions))
    looked = [
        "looked for {} on PATH ({}) and where pyenv, uv, conda, asdf, mise and the system keep"
        " theirs".format(names, environ.get("PATH", "")),
        *("found, but of no use: " + one for one in tried),
    ]
    remedy = [
        "to get one: `uv python install {}`, `pyenv install {}`, `conda create -n py{} python={}`,"
        " or your system's package (apt install python{} python{}-venv)".format(
            wanted, wanted, wanted.replace(".", ""), wanted, wanted, wanted
        ),
        f"one elsewhere: export {VARIABLE % versions[0]}=/path/to/python{wanted}",
    ]
    return InterpreterMissingError(
        f"it needs Python {demand}, and there is none on this machine", looked, remedy
    )


def _release(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]


def _conda_roots(home: Path, environ: Mapping[str, str]) -> list[Path]:
    roots = [home / name for name in ("miniforge3", "mambaforge", "miniconda3", "anaconda3")]
    roots += [home / ".conda", home / "micromamba", Path("/opt/conda")]
    if environ.get("CONDA_EXE"):
        roots.insert(0, Path(environ["CONDA_EXE"]).parent.parent)
    if environ.get("MAMBA_ROOT_PREFIX"):
        roots.insert(0, Path(environ["MAMBA_ROOT_PREFIX"]))
    return [root for root in roots if root.is_dir()]


# What markers are evaluated against is that of PEP 508, asked of the Python that they are about.
_LIST = """\
import json, os, platform, sys
from importlib.metadata import distributions
v = sys.implementation.version
kind = "" if v.releaselevel == "final" else v.releaselevel[0] + str(v.serial)
markers = {
    "implementation_name": sys.implementation.name,
    "implementation_version": "%d.%d.%d" % v[:3] + kind,
    "os_name": os.name,
    "platform_machine": platform.machine(),
    "platform_python_implementation": platform.python_implementation(),
    "platform_release": platform.release(),
    "platform_system": platform.system(),
    "platform_version": platform.version(),
    "python_full_version": platform.python_version(),
    "python_version": ".".join(platform.python_version_tuple()[:2]),
    "sys_platform": sys.platform,
}
found = [
    [d.metadata["Name"], d.version, d.requires or [], d.metadata["Requires-Python"]]
    for d in distributions()
]
print(json.dumps([markers, found]))
"""


class Package(NamedTuple):
    """An installed distribution, as its metadata says it."""

    name: str
    version: str
    requires: list[str]
    python: str | None


class PackageList(NamedTuple):
    """The packages of a stack, and the values of its Python for markers (PEP 508)."""

    markers: dict[str, str]
    packages: list[Package]


def list_installed(python: str) -> PackageList:
    """What this Python holds. Raises SoftwareError."""
    done = subprocess.run(
        [python, "-I", "-c", _LIST],
        capture_output=True,
        env=variables_for_builds({}),
        check=False,
    )
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise SoftwareError(f"its packages cannot be listed: {' '.join(words)}")
    markers, found = json.loads(done.stdout.decode("utf-8"))
    return PackageList(markers, [Package(*each) for each in found])


def versions_of(installed: PackageList) -> dict[str, str]:
    found = {each.name: each.version for each in installed.packages}
    return {name: found[name] for name in sorted(found, key=str.lower) if name != "pip"}


def missing_requirements(installed: PackageList) -> dict[str, str]:
    """What installed packages ask for, with the extras by which they are asked for, and is not
    there: requirements by normalised name."""
    requirements, _ = packaging_modules()
    there = {normalised(each.name): each for each in installed.packages}
    extras = {name: {""} for name in there}
    found = {}
    todo = list(there)
    while todo:
        name = todo.pop()
        for text in there[name].requires:
            wanted = requirements.Requirement(text)
            marker, wanted.marker = wanted.marker, None
            if marker is not None and not any(
                marker.evaluate(dict(installed.markers, extra=each)) for each in extras[name]
            ):
                continue
            other = normalised(wanted.name)
            if other not in there:
                # An address is not for a package to choose: the lock names those.
                wanted.url = None
                found[other] = str(wanted)
            elif not wanted.extras <= extras[other]:
                extras[other] |= wanted.extras
                todo.append(other)
    return dict(sorted(found.items()))


def packages_refusing_python(installed: PackageList) -> list[tuple[str, str]]:
    """The packages that do not take this Python: names and what they demand."""
    _, specifiers = packaging_modules()
    version = installed.markers["python_full_version"]
    return [
        (each.name, each.python)
        for each in installed.packages
        if each.python and not specifiers.SpecifierSet(each.python).contains(version, True)
    ]


def packaging_modules() -> tuple[Any, Any]:
    """packaging's modules of requirements and specifiers: the library, or the copy in pip. Neither
    is the standard library's, so which one is there is found out when it is needed."""
    for library in ("packaging", "pip._vendor.packaging"):
        with suppress(ImportError):
            requirements = importlib.import_module(library + ".requirements")
            return requirements, importlib.import_module(library + ".specifiers")
    raise SoftwareError(
        "the demands of its packages cannot be read: there is neither packaging nor pip here\n"
        "help: install packaging beside agentc"
    )
