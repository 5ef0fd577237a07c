"""What a built software environment holds, what its packages lack, and what refuses its Python.

The environment's own Python only lists its packages; demands are read here, so that neither an
old Python nor an environment without pip has to bear the code that reads them. `installation.py`
asks.
"""

from __future__ import annotations

import importlib
import json
import subprocess
from contextlib import suppress
from typing import Any, NamedTuple

from agentc.runtime.software.build_variables import variables_for_pip
from agentc.runtime.software.environment import SoftwareEnvironmentError
from agentc.runtime.software.lock_text import normalised

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
    """The packages of an environment, and the values of its Python for markers (PEP 508)."""

    markers: dict[str, str]
    packages: list[Package]


def list_installed(python: str) -> PackageList:
    """What this Python's environment holds. Raises SoftwareEnvironmentError."""
    done = subprocess.run(
        [python, "-I", "-c", _LIST],
        capture_output=True,
        env=variables_for_pip({}),
        check=False,
    )
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise SoftwareEnvironmentError(f"its packages cannot be listed: {' '.join(words)}")
    markers, found = json.loads(done.stdout.decode("utf-8"))
    return PackageList(markers, [Package(*each) for each in found])


def versions_of(installed: PackageList) -> dict[str, str]:
    found = {each.name: each.version for each in installed.packages}
    return {name: found[name] for name in sorted(found, key=str.lower) if name != "pip"}


def lacking(installed: PackageList) -> dict[str, str]:
    """What installed packages ask for, with the extras by which they are asked for, and is not
    there: requirements by normalised name."""
    requirements, _ = readers_of_demands()
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


def refusing(installed: PackageList) -> list[tuple[str, str]]:
    """The packages that do not take this Python: names and what they demand."""
    _, specifiers = readers_of_demands()
    version = installed.markers["python_full_version"]
    return [
        (each.name, each.python)
        for each in installed.packages
        if each.python and not specifiers.SpecifierSet(each.python).contains(version, True)
    ]


def readers_of_demands() -> tuple[Any, Any]:
    """packaging's modules of requirements and specifiers: the library, or the copy in pip. Neither
    is the standard library's, so which one is there is found out when it is needed."""
    for library in ("packaging", "pip._vendor.packaging"):
        with suppress(ImportError):
            requirements = importlib.import_module(library + ".requirements")
            return requirements, importlib.import_module(library + ".specifiers")
    raise SoftwareEnvironmentError(
        "the demands of its packages cannot be read: there is neither packaging nor pip here\n"
        "help: install packaging beside agentc"
    )
