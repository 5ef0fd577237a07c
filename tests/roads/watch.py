"""Notes which modules of agentc see a value: `python watch.py NOTES -m MODULE WORDS...`.

A trace function looks at what functions are given, what they hold when they end and what they
return. Standard library only: it runs in every process of a job. NOTES is a folder
with `markers.json`: in words of a command line the values would be seen where nobody has them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import runpy
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGES = ("agentc", "agentc_backends")
LONGEST_WORD = 200
"""A text of more characters that has the value in it is a document around it."""
DEPTH = 14
CALLS = 500
"""So many calls of a function are looked at: inner loops would take minutes."""
HAND, INSIDE = "hand", "inside"


class Watch:
    """What was seen: by marker and module, whether it had the value in hand, or held something
    larger with the value inside it."""

    def __init__(self, markers: Mapping[str, float], *, deep: bool) -> None:
        """Without `deep` only what is in hand is looked for: a program's data may be large."""
        self.deep = deep
        self.markers = dict(markers)
        self.seen: dict[str, dict[str, str]] = {name: {} for name in markers}
        # Not within a longer word: digits of a hash are nobody's setting.
        self._texts = {
            name: re.compile(rf"(?<![0-9A-Za-z.]){re.escape(repr(value))}(?![0-9A-Za-z])")
            for name, value in markers.items()
        }
        self._modules: dict[str, str | None] = {}
        self._calls: dict[CodeType, int] = {}
        # By identity, with the object kept so that no other gets its address.
        self._frozen: dict[int, tuple[Any, frozenset[str]]] = {}

    def start(self) -> None:
        """Trace this thread and those that follow."""
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def look_at_words(self, module: str, words: list[str]) -> None:
        """A program has the words of its command line in hand."""
        self._look(module, list(words))

    def stop(self) -> None:
        """Trace no more."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self._modules:
            self._modules[name] = module_of(name)
        module = self._modules[name]
        calls = self._calls.get(frame.f_code, 0)
        if module is None or calls == CALLS:
            return None
        self._calls[frame.f_code] = calls + 1
        self._look(module, list(frame.f_locals.values()))

        def local(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "return":
                self._look(module, [argument, *frame.f_locals.values()])
            return local

        frame.f_trace_lines = False
        return local

    def _look(self, module: str, values: list[Any]) -> None:
        open_ones = [n for n in self.markers if self.seen[n].get(module) != HAND]
        if not open_ones:
            return
        for value in values:
            for found in self._near(value, open_ones):
                self.seen[found][module] = HAND
        rest = [n for n in open_ones if module not in self.seen[n]]
        for value in values if rest and self.deep else ():
            for found in self._within(value, DEPTH):
                self.seen[found].setdefault(module, INSIDE)

    def _near(self, value: Any, names: list[str]) -> Iterator[str]:
        """Markers that are the value, or at most two steps inside it."""
        for member in (value, *_members(value)):
            for one in (member, *_members(member)):
                yield from (name for name in names if self._is(one, name))

    def _is(self, value: Any, name: str) -> bool:
        if type(value) in (int, float):
            return bool(value == self.markers[name])
        if type(value) is str:
            return len(value) <= LONGEST_WORD and bool(self._texts[name].search(value))
        return False

    def _within(self, value: Any, depth: int) -> frozenset[str]:
        if type(value) is str:
            return frozenset(name for name, text in self._texts.items() if text.search(value))
        if type(value) in (int, float):
            return frozenset(name for name in self.markers if self._is(value, name))
        if depth == 0 or type(value) in (bool, type(None), bytes, type):
            return frozenset()
        known = self._frozen.get(id(value))
        if known is not None:
            return known[1]
        members = _members(value)
        if not members:
            return frozenset()
        found: frozenset[str] = frozenset()
        if type(value) not in (dict, list, set):
            self._frozen[id(value)] = (value, found)  # a circle ends here
        for member in members:
            found |= self._within(member, depth - 1)
        if _is_frozen(value):
            self._frozen[id(value)] = (value, found)
        else:
            self._frozen.pop(id(value), None)
        return found


def module_of(path: str) -> str | None:
    """`agentc/plan/keys.py` of the path of that module; None of a stranger's."""
    parts = Path(os.path.realpath(path)).parts
    for place in range(len(parts) - 1, -1, -1):
        if parts[place] in PACKAGES and parts[place - 1] in ("compiler", "backends"):
            return "/".join(parts[place:])
    return None


def _members(value: Any) -> tuple[Any, ...]:
    """What is one step inside: items, or the members of an object of agentc's."""
    kind = type(value)
    if kind is dict:
        return (*value.values(), *value.keys())
    if kind in (list, tuple, set, frozenset):
        return tuple(value)
    if kind.__module__.partition(".")[0] not in (*PACKAGES, "argparse"):
        return ()
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return tuple(getattr(value, name, None) for name in names)
    return tuple(getattr(value, "__dict__", {}).values())


def _is_frozen(value: Any) -> bool:
    parameters = getattr(type(value), "__dataclass_params__", None)
    return bool(parameters and parameters.frozen)


def markers_of(notes: Path) -> dict[str, float]:
    """The values that are looked for, by name."""
    found: dict[str, float] = json.loads((notes / "markers.json").read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Run a program as its main module; what was seen goes into a file of the folder."""
    notes, option, module = Path(sys.argv[1]), *sys.argv[2:4]
    assert option == "-m", "a program of agentc is a module"
    sys.argv = [module, *sys.argv[4:]]
    if sys.path[0] == str(Path(__file__).resolve().parent):
        del sys.path[0]
    watch = Watch(markers_of(notes), deep=False)
    watch.look_at_words(module.replace(".", "/") + ".py", sys.argv)
    watch.start()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        watch.stop()
        path = notes / f"{module}.{os.getpid()}.json"
        path.write_text(json.dumps(watch.seen), encoding="utf-8")


if __name__ == "__main__":
    main()
