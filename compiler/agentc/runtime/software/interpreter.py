"""Finds the Python interpreter that a software environment demands.

Looked for in the order of `candidates`; each is started once, since a name on PATH may be a shim
that starts nothing (pyenv) and a folder may hold half an installation.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from agentc.runtime.software.lock_text import meets

VARIABLE = "AGENTC_PYTHON_%d_%d"
"""Environment variable that names the interpreter of a minor version."""
OLDEST, NEWEST = (3, 8), (3, 15)
_PROBE_S = 20.0
_PROBE = (
    "import json, platform, sys\n"
    "from importlib.util import find_spec as f\n"
    "print(json.dumps([list(sys.version_info[:2]), platform.python_version(),"
    " platform.python_implementation(), bool(f('venv')), bool(f('ensurepip'))]))"
)


class Interpreter(NamedTuple):
    """A Python that works. `version` is (major, minor), `release` the whole of it; `ensurepip`
    tells whether it can put pip into a new environment (Debian packages that apart)."""

    path: str
    version: tuple[int, int]
    release: str
    ensurepip: bool = True


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
        version, release, implementation, venv, ensurepip = json.loads(done.stdout.decode("utf-8"))
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
    return Interpreter(path, (version[0], version[1]), release, bool(ensurepip))


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
        text = "no Python meets `%s`: environments are of Python %d.%d and newer"
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
