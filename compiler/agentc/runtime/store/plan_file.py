"""Reads from a plan.json only what one job needs: a plan of ten thousand jobs is tens of MB, and
a job must not spend a tenth of a second on it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

from agentc.runtime.store.moved_programs import current_program

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
            raise PlanError("cannot read the plan %s: %s" % (path, error.strerror)) from None
        self._whole: Optional[Dict[str, Any]] = None

    def job(self, name: str) -> Dict[str, Any]:
        """The job with that id, its program by the name that it has now. Raises PlanError."""
        job = self._entry("jobs", name)
        return {**job, "program": current_program(job["program"])}

    def session(self, name: str) -> Dict[str, Any]:
        """The session with that id. Raises PlanError."""
        return self._entry("sessions", name)

    def server(self, name: str) -> Dict[str, Any]:
        """The shared server with that id. Raises PlanError."""
        return self._entry("servers", name)

    def session_jobs(self, session: Dict[str, Any]) -> List[Dict[str, Any]]:
        """The members of a session, in its order."""
        return [self.job(member) for member in session["members"]]

    def lock(self, environment: str) -> Tuple[str, str]:
        """Sha256 and text of a software environment's lock. Raises PlanError."""
        known = self._environments().get(environment)
        if known is None:
            raise PlanError("the plan has no software environment named %r" % environment)
        path = self.path.parent / known["file"]
        try:
            return known["lock"], path.read_bytes().decode("utf-8")
        except OSError as error:
            raise PlanError("cannot read the lock %s: %s" % (path, error.strerror)) from None

    def code(self) -> Dict[str, Dict[str, str]]:
        """The code that its spec brought along: by module, the text of each file."""
        if '\n  "code": {\n' not in self._text:
            return {}
        return dict(self._load()["code"])

    def secret_names(self) -> Set[str]:
        """The variables that hold secrets of any job or server. Found in the text, for a plan of
        ten thousand jobs takes long to decode."""
        tables = _SECRETS.findall(self._text)
        return {name for table in tables for name in _VALUE.findall(table)}

    def _entry(self, table: str, name: str) -> Dict[str, Any]:
        found = self._cut_out(name) if len(self._text) > _LARGE else None
        if found is not None and _MARKS[table] in found:
            return found
        for entry in self._load().get(table) or []:
            if entry["id"] == name:
                return dict(entry)
        raise PlanError("the plan %s has no %s named %r" % (self.path, table[:-1], name))

    def _cut_out(self, name: str) -> Optional[Dict[str, Any]]:
        """The entry as cut from the canonical text, whose list entries are indented by four."""
        at = self._text.find('\n      "id": %s,\n' % json.dumps(name, ensure_ascii=False))
        if at < 0:
            return None
        begin = self._text.rfind("\n    {\n", 0, at + 1)
        end = self._text.find("\n    }", at)
        try:
            entry: Dict[str, Any] = json.loads(self._text[begin : end + 6])
        except ValueError:
            return None
        return entry if entry.get("id") == name else None

    def _environments(self) -> Dict[str, Dict[str, str]]:
        if len(self._text) > _LARGE:
            begin = self._text.find('\n  "environments": {\n')
            end = self._text.find("\n  },\n", begin)
            if begin >= 0 and end >= 0:
                try:
                    cut = json.loads("{" + self._text[begin : end + 4] + "}")
                    return dict(cut["environments"])
                except ValueError:
                    pass
        return dict(self._load()["environments"])

    def _load(self) -> Dict[str, Any]:
        if self._whole is None:
            try:
                self._whole = json.loads(self._text)
            except ValueError as error:
                raise PlanError("%s is not JSON: %s" % (self.path, error)) from None
        return self._whole
