"""Says in words why pip, uv or venv failed: the cause, what helps, and the last lines written."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

_LAST = 20
_FULL = ("no space left on device", "errno 28", "disk quota exceeded", "errno 122")
_OFFLINE = (
    "temporary failure in name resolution", "name or service not known", "newconnectionerror",
    "failed to establish a new connection", "network is unreachable", "connecttimeouterror",
    "connection refused", "nameresolutionerror", "cannot connect to proxy", "proxyerror",
    "read timed out", "no address associated with hostname", "dns error", "error sending request",
    "network connectivity is disabled", "tcp connect error",
)  # fmt: skip
_NO_VENV = ("ensurepip is not available", "no module named ensurepip", "no module named venv")
_COMPILER = ("command 'gcc' failed", "command 'cc' failed", "command 'g++' failed",
             "no such file or directory: 'gcc'", "python.h: no such file", "unable to find a comp",
             "no such file or directory: 'g++'", "no such file or directory: 'cc'")  # fmt: skip


def explain_failure(lines: Sequence[str], directory: Path) -> str:
    """The message for people about a build in `directory` that ended with these lines."""
    found = _cause("\n".join(lines), directory)
    tail = ["  | " + line for line in lines[-_LAST:]]
    return "\n".join([*found, *tail])


def _cause(text: str, directory: Path) -> list[str]:
    low = text.lower()
    if _any(_FULL, low):
        return [
            f"the disk is full: {_left(directory)} is left for {directory.parent}",
            "help: free some space, or keep software environments on another disk:"
            " export AGENTC_ENVIRONMENTS=/somewhere/else",
        ]
    if _any(_OFFLINE, low):
        return [
            "the package index cannot be reached from this machine",
            "help: build it where there is a network and the same folder"
            " (`agentc env sync SPEC` on a cluster's login node), or name a mirror:"
            " export PIP_INDEX_URL=https://... (PIP_FIND_LINKS=/folder for downloaded wheels)",
        ]
    if _any(_NO_VENV, low):
        return [
            "this Python cannot make environments: its module ensurepip is missing",
            "help: on Debian and Ubuntu `apt install python3-venv` (pythonX.Y-venv for another"
            " version)",
        ]
    match = re.search(r"package '?([^\s']+)'? requires a different python: (\S+) not in '([^']+)'",
                      low)  # fmt: skip
    if match:
        return [
            "{} does not take Python {}: it asks for {}".format(*match.groups()),
            "help: the lock may demand another interpreter (`# agentc: python 3.10`) or take the"
            " package all the same (`# agentc: then --ignore-requires-python` before its line)",
        ]
    match = re.search(r"no matching distribution found for (\S+)", text, re.IGNORECASE)
    if match:
        if "(from versions: none)" in low:
            return [
                f"the package index has no version of {match.group(1)} for this Python and "
                "platform, or it"
                " cannot be reached",
                "help: is PIP_INDEX_URL right, and is there a network?",
            ]
        return [
            f"the package index has no {match.group(1)} for this Python and platform",
            "help: choose a version that it has, or an interpreter that the package was built for",
        ]
    match = re.search(r"(?:there is no version of|no versions of) ([^\s,]+)", text) or re.search(
        r"because (\S+) has no wheels with a matching", text, re.IGNORECASE
    )
    if match:
        return [
            f"the package index has no {match.group(1)} for this Python and platform",
            "help: choose a version that it has, or an interpreter that the package was built for;"
            " is PIP_INDEX_URL right?",
        ]
    if "do not match the hashes" in low or "hash mismatch for" in low:
        return [
            f"{_named_by_hash(text)} is not the file that the lock names by its hash",
            "help: where it comes from your own index or build, `agentc env hash LOCK --file FILE`"
            " adds its hash to a lock of yours (`software:` in a spec); else it has been altered:"
            " use it for nothing",
        ]
    if "hashes are required" in low or "hash for all requirements" in low:
        return [
            "the lock lacks the hash of something that it names",
            "help: `agentc env hash LOCK` adds the hashes that its package index states",
        ]
    if _any(_COMPILER, low):
        return [
            "a package has to be built from source, and this machine has no compiler for it",
            "help: on Debian and Ubuntu `apt install build-essential python3-dev`",
        ]
    if "no module named 'torch'" in low or "modulenotfounderror" in low:
        return [
            "a package that is built from source needs another one to be there before it",
            "help: in the lock, put it below a line `# agentc: then --no-build-isolation`",
        ]
    if "permission denied" in low or "read-only file system" in low:
        return [
            f"{directory.parent} cannot be written to",
            "help: export AGENTC_ENVIRONMENTS=/a/folder/of/yours",
        ]
    return ["the installation failed; its last lines:"]


def _named_by_hash(text: str) -> str:
    match = re.search(r"^\s*(\S+==\S+|\S+ @ \S+).* from (?:file|http)\S*", text, re.MULTILINE)
    match = match or re.search(r"[Hh]ash mismatch for `([^`]+)`", text)
    return "a downloaded file" if match is None else match.group(1)


def _any(signs: Sequence[str], text: str) -> bool:
    return any(sign in text for sign in signs)


def _left(directory: Path) -> str:
    for place in (directory, *directory.parents):
        if place.exists():
            return f"{shutil.disk_usage(str(place)).free / 1000000.0:.1f} MB"
    return "nothing"
