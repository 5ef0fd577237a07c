"""Hashes in a lock: what they leave alone in its digest, and which packages lack one.

A lock names each file that may be installed by `--hash=sha256:...`, as pip has it. The digest says
what is installed, so it leaves out the hashes of `name==version`: an index gives no other files for
a version, hashes of further platforms change nothing, and a file that is not among them is refused
while it is installed. An address (`name @ ...`) says nothing of its content: its hash counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

IF_ASKED = re.compile(r"^#\s*agentc:\s*if-asked\s*$", re.MULTILINE)
"""From here on: what is installed only where this platform's packages ask for it. Which they are
follows from the pins above, so the digest covers what stands before."""
_HASH = re.compile(
    r"\s*--hash=(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})(?=\s|$)"
)
_HASH_OF_ANY_FORM = re.compile(r"\s*--hash[= ]\S+")
_NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_ADDRESS = re.compile(r"^\s*[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^\]]*\])?\s*@")


def whole_lines(text: str) -> Iterator[str]:
    """Its lines, those that end in a backslash joined with what follows them."""
    begun: list[str] = []
    for line in text.splitlines():
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            begun.append(line[:-1])
            continue
        yield "".join([*begun, line])
        begun = []
    if begun:
        yield "".join(begun)


def without_hashes(line: str) -> str:
    """A requirement as it is written without hashes."""
    return _HASH_OF_ANY_FORM.sub("", line).rstrip()


@lru_cache(maxsize=64)
def lock_digest(text: str) -> str:
    """The identity of the environment that a lock describes, in hexadecimal."""
    found = IF_ASKED.search(text)
    covered = text if found is None else text[: found.start()]
    if "--hash" in covered:
        lines = [
            without_hashes(line) if "--hash" in line and not _ADDRESS.match(line) else line
            for line in whole_lines(covered)
        ]
        covered = "\n".join(lines) + "\n"
    return hashlib.sha256(covered.encode("utf-8")).hexdigest()


def name_of(line: str) -> str:
    """The name of the distribution that a requirement asks for, normalised (PEP 503)."""
    match = _NAME.match(line)
    return "" if match is None else re.sub(r"[-_.]+", "-", match.group(1)).lower()


def requirements(text: str) -> Iterator[str]:
    """The requirements among its lines: no comments, no options of pip."""
    for line in whole_lines(text):
        if line.strip() and not line.lstrip().startswith(("#", "-")):
            yield line


def lacking_hashes(text: str, unverified: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The packages without a hash that pip would accept, but for those that the lock calls
    unverified. A lock that is a container has none."""
    return tuple(
        name_of(line)
        for line in requirements(text)
        if not _HASH.search(line) and name_of(line) not in unverified
    )


def enumerated(names: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
