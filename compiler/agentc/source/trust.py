"""Folders whose code a user trusts (`agentc trust`): `~/.config/agentc/trusted.json`.

A folder is trusted by its real path and its owner. Neither the list nor trusted code may be
writable by anybody but this user, root and that owner: whoever could change it would decide what
runs here. Both are looked at on each use.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

_NAME = "agentc/trusted.json"
_OTHERS = 0o022


class TrustError(Exception):
    """Why a folder cannot be trusted, or the list of such folders not be used."""


@dataclass(frozen=True, slots=True)
class TrustedFolder:
    """`owner` is the number of the user that it belonged to, `since` the time, when it was trusted
    (UTC)."""

    folder: str
    owner: int
    since: str


def trust_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the list is. Raises TrustError where this user has no home."""
    home = environ.get("XDG_CONFIG_HOME")
    try:
        return Path(home or Path.home() / ".config") / _NAME
    except RuntimeError:
        raise TrustError("this user has no home folder to keep a list of folders in") from None


def trusted_folders(environ: Mapping[str, str] = os.environ) -> tuple[TrustedFolder, ...]:
    """All that this user trusts. Raises TrustError for a list that others could have written, or
    that cannot be read."""
    file = trust_file(environ)
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise TrustError(f"{file} cannot be read: {error.strerror}") from None
    with os.fdopen(handle, encoding="utf-8") as stream:
        state = os.fstat(handle)
        if state.st_uid != os.geteuid() or state.st_mode & 0o077:
            raise TrustError(
                f"{file} is not read: it must belong to {user_name(os.geteuid())}, with mode 0600 "
                f"(it belongs to {user_name(state.st_uid)}, with mode {state.st_mode & 0o7777:04o})"
            )
        try:
            entries = json.load(stream)
            return tuple(
                TrustedFolder(str(each["folder"]), int(each["owner"]), str(each["since"]))
                for each in entries
            )
        except (ValueError, KeyError, TypeError):
            raise TrustError(f"{file} cannot be read: it is no list of folders") from None


def trust(folder: Path, environ: Mapping[str, str] = os.environ) -> TrustedFolder:
    """Add a folder to the list. Raises TrustError."""
    try:
        real = folder.expanduser().resolve(strict=True)
        state = real.stat()
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TrustError(f"{folder} cannot be trusted: {reason}") from None
    if not stat.S_ISDIR(state.st_mode):
        raise TrustError(f"{folder} is no folder: trust the folder that holds it")
    if real in (Path("/"), _home()):
        raise TrustError(f"{real} holds more than an experiment: trust the experiment's own folder")
    entry = TrustedFolder(
        str(real), state.st_uid, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    )
    reason = _write_access(real, entry.owner)
    if reason is not None:
        raise TrustError(f"{real} cannot be trusted: {reason}")
    kept = [each for each in trusted_folders(environ) if each.folder != entry.folder]
    _write([*kept, entry], environ)
    return entry


def revoke(folder: Path, environ: Mapping[str, str] = os.environ) -> TrustedFolder | None:
    """Take a folder off the list, one that is gone too; None where it was not on it. Raises
    TrustError."""
    listed = trusted_folders(environ)
    real = str(folder.expanduser().resolve())
    found = next((each for each in listed if each.folder == real), None)
    if found is not None:
        _write([each for each in listed if each is not found], environ)
    return found


def distrust_reason(place: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """Why the file, or the package, at this real path may not run as trusted code, "" where no
    folder that holds it is trusted; None where it may run. Raises TrustError."""
    holding = [each for each in trusted_folders(environ) if place.is_relative_to(Path(each.folder))]
    if not holding:
        return ""
    reasons = [_fault(each, place) for each in holding]
    return None if None in reasons else reasons[0]


def _fault(entry: TrustedFolder, place: Path) -> str | None:
    """What has changed in a trusted folder so that the code in it may not run."""
    folder = Path(entry.folder)
    try:
        owner = folder.stat().st_uid
        if owner != entry.owner:
            return (
                f"{folder} was trusted when it belonged to {user_name(entry.owner)}, and belongs "
                f"to {user_name(owner)} now"
            )
        for part in _parts(folder, place):
            reason = _write_access(part, entry.owner)
            if reason is not None:
                return f"{part} is in a trusted folder, but {reason}"
    except OSError as error:
        return f"{error.filename} cannot be read: {error.strerror}"
    return None


def _parts(folder: Path, place: Path) -> Iterator[Path]:
    """The folder, what lies between it and the code, and all files of the code."""
    yield folder
    yield from (each for each in reversed(place.parents) if folder in each.parents)
    if place != folder:
        yield place
    if place.is_dir():
        for at, folders, files in os.walk(place):
            yield from (Path(at, name) for name in (*folders, *files) if name != "__pycache__")


def _write_access(path: Path, owner: int) -> str | None:
    """Why somebody besides this user, root and the owner of the folder could change a path."""
    state = path.stat()
    if state.st_uid not in (os.geteuid(), 0, owner):
        return f"it belongs to {user_name(state.st_uid)}"
    if state.st_mode & 0o002:
        return f"every user may write to it (`chmod o-w {path}`)"
    if state.st_mode & 0o020 and not _is_private(state.st_gid, state.st_uid):
        return f"the group {_group_name(state.st_gid)} may write to it (`chmod g-w {path}`)"
    return None


def _is_private(group: int, user: int) -> bool:
    """Whether a group is that of one user alone, as many systems make one for each."""
    try:
        known, person = grp.getgrgid(group), pwd.getpwuid(user)
    except KeyError:
        return False
    return known.gr_name == person.pw_name and not {*known.gr_mem} - {person.pw_name}


def _write(entries: list[TrustedFolder], environ: Mapping[str, str]) -> None:
    """Replace the list as a whole."""
    file = trust_file(environ)
    text = json.dumps([asdict(each) for each in entries], indent=2) + "\n"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(prefix=file.name, dir=file.parent)  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            Path(draft).replace(file)
        except OSError:
            Path(draft).unlink()
            raise
    except OSError as error:
        raise TrustError(f"{file} cannot be written: {error.strerror}") from None


def user_name(user: int) -> str:
    """The name of a user, or the number of one without a name here."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"the user {user}"


def _group_name(group: int) -> str:
    try:
        return grp.getgrgid(group).gr_name
    except KeyError:
        return str(group)


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except RuntimeError:
        return None
