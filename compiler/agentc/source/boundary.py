"""Boundary: which files of this machine a spec may name.

A spec is somebody else's text until proven otherwise: what it names has to lie in its own folder,
links followed, or under a directory that the person who runs agentc allows (`--allow-path`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "AGENTC_ALLOW_PATH"
"""Directories that specs may name, separated like those of PATH."""
CODE_VARIABLE = "AGENTC_ALLOW_CODE"
"""Directories from which backends that a spec brings along may be run, separated alike."""


class OutsideError(Exception):
    """A path that leads out of the boundary. `written` is as in the spec, `place` where it leads
    (a link inside of a directory may lead elsewhere than the directory itself)."""

    def __init__(self, written: str, place: Path) -> None:
        super().__init__(f"{written} lies outside of what the spec may name")
        self.written, self.place = written, place


@dataclass(frozen=True, slots=True)
class Boundary:
    """`directory` is the spec's folder, where relative paths start."""

    directory: Path
    allowed: tuple[Path, ...] = ()

    def find(self, written: str) -> Path:
        """Where a path of the spec leads. Raises OutsideError, also for what is no path."""
        try:
            path = self.directory / Path(written).expanduser()
            if not self.holds(path):
                raise OutsideError(written, path.resolve())
        except (OSError, ValueError, RuntimeError):  # a null character, a circle of links, no home
            raise OutsideError(written, Path(written)) from None
        return path

    def holds(self, path: Path) -> bool:
        """Whether a path lies inside, with links followed."""
        real = path.resolve()
        roots = (self.directory, *self.allowed)
        return any(real.is_relative_to(root.resolve()) for root in roots)


def allowed_paths(
    given: Iterable[str] = (), environment: Mapping[str, str] = os.environ
) -> tuple[Path, ...]:
    """The directories of `--allow-path` and of AGENTC_ALLOW_PATH."""
    return _listed(given, environment.get(VARIABLE, ""))


def allowed_code(
    given: Iterable[str] = (), environment: Mapping[str, str] = os.environ
) -> tuple[Path, ...]:
    """The directories of `--allow-code` and of AGENTC_ALLOW_CODE. Those of `--allow-path` are not
    among them: to let a model be read is not to let code run."""
    return _listed(given, environment.get(CODE_VARIABLE, ""))


def _listed(given: Iterable[str], variable: str) -> tuple[Path, ...]:
    texts = (*given, *variable.split(os.pathsep))
    return tuple(Path(text).expanduser() for text in texts if text)
