"""Reads from a plan.json only what one job needs: a plan of ten thousand jobs is tens of MB, and a
job must not spend a tenth of a second on it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def module_of(program: Sequence[str]) -> str:
    """What `-m` names; "" for a program that is no module."""
    return program[1] if len(program) > 1 and program[0] == "-m" else ""


_LARGE = 512 * 1024
_MARKS = {"jobs": "program", "sessions": "members", "servers": "clients"}
"""What tells an entry of each table from those of the others."""
_SECRETS = re.compile(r'"secrets":\s*\{([^{}]*)\}')
_VALUE = re.compile(r':\s*"([^"]*)"')


class PlanError(Exception):
    """The plan cannot be read, or lacks what was asked for."""


class PlanFile:
    """A compiled plan; relative paths in it start at its own directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise PlanError(f"cannot read the plan {path}: {error.strerror}") from None
        self._whole: dict[str, Any] | None = None

    def job(self, name: str) -> dict[str, Any]:
        """The job with that id. Raises PlanError."""
        return self._entry("jobs", name)

    def session(self, name: str) -> dict[str, Any]:
        """The session with that id. Raises PlanError."""
        return self._entry("sessions", name)

    def server(self, name: str) -> dict[str, Any]:
        """The shared server with that id. Raises PlanError."""
        return self._entry("servers", name)

    def session_jobs(self, session: dict[str, Any]) -> list[dict[str, Any]]:
        """The members of a session, in its order."""
        return [self.job(member) for member in session["members"]]

    def lock(self, software: str) -> tuple[str, str]:
        """Sha256 and text of a software stack's lock. Raises PlanError."""
        known = self._software().get(software)
        if known is None:
            raise PlanError(f"the plan has no software stack named {software!r}")
        path = self.path.parent / known["file"]
        try:
            return known["lock"], path.read_bytes().decode("utf-8")
        except OSError as error:
            raise PlanError(f"cannot read the lock {path}: {error.strerror}") from None

    def code(self) -> dict[str, dict[str, str]]:
        """The code that its spec brought along: by module, the text of each file."""
        if '\n  "code": {\n' not in self._text:
            return {}
        return dict(self._load()["code"])

    def secret_names(self) -> set[str]:
        """The variables that hold secrets of any job or server. Found in the text, for a plan of
        ten thousand jobs takes long to decode."""
        tables = _SECRETS.findall(self._text)
        return {name for table in tables for name in _VALUE.findall(table)}

    def _entry(self, table: str, name: str) -> dict[str, Any]:
        found = self._cut_out(name) if len(self._text) > _LARGE else None
        if found is not None and _MARKS[table] in found:
            return found
        for entry in self._load().get(table) or []:
            if entry["id"] == name:
                return dict(entry)
        raise PlanError(f"the plan {self.path} has no {table[:-1]} named {name!r}")

    def _cut_out(self, name: str) -> dict[str, Any] | None:
        """The entry as cut from the canonical text, whose list entries are indented by four."""
        at = self._text.find(f'\n      "id": {json.dumps(name, ensure_ascii=False)},\n')
        if at < 0:
            return None
        begin = self._text.rfind("\n    {\n", 0, at + 1)
        end = self._text.find("\n    }", at)
        try:
            entry: dict[str, Any] = json.loads(self._text[begin : end + 6])
        except ValueError:
            return None
        return entry if entry.get("id") == name else None

    def _software(self) -> dict[str, dict[str, str]]:
        if len(self._text) > _LARGE:
            begin = self._text.find('\n  "software": {\n')
            end = self._text.find("\n  },\n", begin)
            if begin >= 0 and end >= 0:
                try:
                    cut = json.loads("{" + self._text[begin : end + 4] + "}")
                    return dict(cut["software"])
                except ValueError:
                    pass
        return dict(self._load()["software"])

    def _load(self) -> dict[str, Any]:
        if self._whole is None:
            try:
                self._whole = json.loads(self._text)
            except ValueError as error:
                raise PlanError(f"{self.path} is not JSON: {error}") from None
        return self._whole
