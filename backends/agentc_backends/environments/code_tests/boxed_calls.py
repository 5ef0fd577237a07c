"""Runs inside the box: defines what an answer defines, makes the calls, writes what came of each.

It is sent there as text, so it imports nothing that costs time. The code that it runs can reach
all of it and forge every line: it would forge values, which are compared elsewhere with values that
never come here. A line: `v` and a value as JSON (`values.py` reads it), or `e` and a word. Where
the code of the calls is asked for, the first line is `c` and that, before anything else is run.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable
from typing import Any

_DEEPEST = 20
_NAME = "__answer__"
_OFTEN = 8
"""From so many times on Python's code is as fast as it becomes."""
_ASKED = ["f(1)", "f(2.5, b='q')", "f([1])", "f(3, 0)"]
_SAMPLE = """
import math
def f(a, b=2, *c, **d):
    x = {'a': [1, 2.5, (True, 'two')], 'b': None}
    for n in range(3):
        if n > a and n < b or not c:
            x[str(n)] = round(a / 3, 2) + math.floor(1.5)
        elif n == 1:
            return [v for v in x]
    while b < 2:
        b += 1
    return x if a != 3 else f"{a}-{b}"
"""


class _TooLargeError(Exception):
    """The value has more bytes than a line may have."""


def main(answers: int, data: list[dict[str, Any]]) -> None:
    """One answer, or several references: one after the other, with nothing in common but the
    interpreter. Of each `source`, `calls`, `first` (those before are passed over), `namespace`,
    `bytes` of a line, `code` of the calls as it was told beside another source, or empty, `tells`
    whether to tell."""
    leave = os._exit
    for each in data:
        _write_outcomes(answers, each)
    leave(0)


def rehearse() -> None:
    """Runs an answer of ours, for a nursery to do before it forks: what the interpreter keeps of a
    first time, children find. Of the answer nothing is left."""
    code = marshal.dumps([_compiled(call) for call in _ASKED])
    for namespace in ("published", "fresh") * _OFTEN:
        asked = {"source": _SAMPLE, "calls": _ASKED, "first": 0, "bytes": 65536}
        _write_outcomes(1, {**asked, "namespace": namespace, "code": code, "tells": False})
    del sys.modules[_NAME]


def _write_outcomes(answers: int, data: dict[str, Any]) -> None:
    write, encode = os.write, _encode

    def send(line: bytes) -> None:
        view = memoryview(line + b"\n")
        while view:
            view = view[write(answers, view) :]

    codes = marshal.loads(data["code"]) if data["code"] else [b""] * len(data["calls"])
    if data["tells"]:
        codes = [_compiled(call) for call in data["calls"]]
        code = marshal.dumps(codes).hex().encode("ascii")
        send(b"c " + (code if len(code) <= data["bytes"] else b""))
    for number in range(data["first"], len(codes)):
        send(_line(data, codes[number], data["calls"][number], encode))


def _compiled(call: str) -> bytes:
    """Empty where it cannot be: `_line` tells why."""
    try:
        return marshal.dumps(compile(call, "<call>", "eval", dont_inherit=True))
    except Exception:
        return b""


def _line(data: dict[str, Any], code: bytes, call: str, encode: Callable[[Any, int], str]) -> bytes:
    """Whatever the code raises is its own error, an exit too."""
    try:
        if "compiled" not in data:
            data["compiled"] = compile(data["source"], "<answer>", "exec", dont_inherit=True)
        # One at a time, so that all take the same place.
        asked = marshal.loads(code) if code else compile(call, "<call>", "eval", dont_inherit=True)
        value = _value(data["namespace"], data["compiled"], asked)
        return b"v " + encode(value, data["bytes"]).encode("ascii")
    except MemoryError:
        return b"e memory"
    except _TooLargeError:
        return b"e large"
    except BaseException as error:
        name = type(error).__name__
        return b"e " + (name if name.isidentifier() else "?")[:80].encode("ascii", "replace")


def _value(kind: str, code: Any, asked: Any) -> Any:
    """Of a call, in a namespace of what the code defines, and nothing of the calls before."""
    if kind == "published":
        # Definitions are locals of the function that executes them, as in the released evaluator:
        # a function sees no other one, not even itself, and no import beside it.
        outside: dict[str, Any] = {"__name__": _NAME}
        inside: dict[str, Any] = {}
        exec(code, outside, inside)
        return eval(asked, outside, inside)
    module = type(sys)(_NAME)
    sys.modules[_NAME] = module  # dataclasses look there
    exec(code, module.__dict__)
    return eval(asked, module.__dict__)


def _encode(value: Any, most: int) -> str:
    """As JSON, or _TooLargeError. Plain types are taken exactly; of any other value `_reduced`
    says what it equals."""
    pieces: list[str] = []
    room = [most]

    def append(piece: str) -> None:
        room[0] -= len(piece)
        if room[0] < 0:
            raise _TooLargeError
        pieces.append(piece)

    def several(tag: str, members: Any, depth: int) -> None:
        append(f'["{tag}",[')
        for index, member in enumerate(members):
            if index:
                append(",")
            encode_value(member, depth + 1)
        append("]]")

    def encode_value(value: Any, depth: int) -> None:
        kind = type(value)
        if depth > _DEEPEST:
            append('["o"]')
        elif value is None or value is True or value is False:
            append({None: "null", True: "true", False: "false"}[value])
        elif kind is int:
            # Before it is made into text.
            if value.bit_length() > 4 * room[0]:
                raise _TooLargeError
            append(f'["i","{value:#x}"]')
        elif kind is float:
            append(f'["f","{value.hex()}"]')
        elif kind is complex:
            append(f'["c","{value.real.hex()}","{value.imag.hex()}"]')
        elif kind is str or kind is bytes or kind is bytearray:
            if len(value) > room[0]:
                raise _TooLargeError
            tag, text = _text(value)
            append(f'["{tag}","{text}"]')
        elif kind in _MANY:
            several(_MANY[kind], value, depth)
        elif kind is dict:
            several("d", _flat(value.items()), depth)
        else:
            tag, parts = _reduced(value)
            if tag == "o":
                append('["o"]')
            elif tag == "=":
                encode_value(parts, depth + 1)
            else:
                several(tag, parts, depth)

    encode_value(value, 0)
    return "".join(pieces)


_MANY: dict[Any, str] = {list: "l", tuple: "t", set: "s", frozenset: "z"}


def _text(value: Any) -> tuple[str, str]:
    if type(value) is not str:
        return ("b" if type(value) is bytes else "a"), value.hex()
    if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return "w", value
    return "u", value.encode("utf-8", "surrogatepass").hex()


def _flat(pairs: Any) -> list[Any]:
    return [part for pair in pairs for part in pair]


_WHOLE = slice(None)
_PLAIN: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (complex, lambda v: complex(complex.real.__get__(v), complex.imag.__get__(v))),
    (bytes, lambda v: bytes.__getitem__(v, _WHOLE)),
    (bytearray, lambda v: bytearray.__getitem__(v, _WHOLE)),
    (list, lambda v: list.__getitem__(v, _WHOLE)),
    (tuple, lambda v: tuple.__getitem__(v, _WHOLE)),
    (set, lambda v: {*set.__iter__(v)}),
    (frozenset, lambda v: frozenset(frozenset.__iter__(v))),
    (dict, lambda v: dict(dict.items(v))),
)
"""What a value of a subclass is without what the subclass adds, by methods of the base alone: one
that claims to equal everything equals what its base does."""


def _reduced(value: Any) -> tuple[str, Any]:
    """A tag of `values.py` and the parts of a value, or `=` and a value that it equals; `o` for
    what equals nothing outside of its process."""
    kind = type(value)
    for find in (_of_numpy, _of_library):
        found = find(value, kind)
        if found is not None:
            return found
    for plain, base in _PLAIN:
        if issubclass(kind, plain):
            return "=", base(value)
    named = _named(value, kind)
    return ("name", (named,)) if named else ("o", ())


def _class(module: str, name: str) -> Any:
    """A class of a module that is loaded. Without the module no value is one of it."""
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else type(None)


def _of_numpy(value: Any, kind: Any) -> tuple[str, Any] | None:
    """A number, or an array of one, compares as its number does, with lists of one as well. Larger
    arrays have no truth of a comparison."""
    generic, array = _class("numpy", "generic"), _class("numpy", "ndarray")
    if issubclass(kind, generic):
        item = generic.item(value)
        if type(item) is kind:  # wider than Python's own
            item = float(value) if float(value) == value else object()
        return "one", (item,)
    if issubclass(kind, array):
        return ("one", (array.item(value),)) if array.size.__get__(value) == 1 else ("o", ())
    return None


def _of_library(value: Any, kind: Any) -> tuple[str, Any] | None:
    """Of Python's own classes that compare by value."""
    if kind is range:
        return "range", (value.start, value.stop, value.step)
    if kind is slice:
        return "slice", (value.start, value.stop, value.step)
    if issubclass(kind, type({}.keys())):
        return "keys", [*value]
    if issubclass(kind, type({}.items())):
        return "items", _flat(value)
    if kind is type(type.__dict__):
        return "=", {**value}
    for module, name, tag, parts in _LIBRARY:
        base = _class(module, name)
        if issubclass(kind, base):
            return tag, parts(base, value)
    return None


def _parts(*names: str) -> Callable[[Any, Any], Any]:
    return lambda base, value: [getattr(base, name).__get__(value) for name in names]


def _data(base: Any, value: Any) -> Any:
    return object.__getattribute__(value, "data")


_DATE, _TIME = ("year", "month", "day"), ("hour", "minute", "second", "microsecond")
# fmt: off
_LIBRARY: tuple[tuple[str, str, str, Callable[[Any, Any], Any]], ...] = (
    ("collections", "OrderedDict", "ordered", lambda base, v: _flat(base.items(v))),
    ("collections", "Counter", "counter", lambda base, v: _flat(dict.items(v))),
    ("collections", "deque", "deque", lambda base, v: [*base.__iter__(v)]),
    ("collections", "UserDict", "=", _data),
    ("collections", "UserList", "=", _data),
    ("collections", "UserString", "=", _data),
    ("collections", "ChainMap", "=",
     lambda base, v: {key: base.__getitem__(v, key) for key in base.__iter__(v)}),
    ("decimal", "Decimal", "decimal", lambda base, v: (base.__str__(v),)),
    ("fractions", "Fraction", "fraction", _parts("numerator", "denominator")),
    ("datetime", "datetime", "datetime",
     lambda base, v: (*_parts(*_DATE, *_TIME)(base, v), base.utcoffset(v))),
    ("datetime", "date", "date", _parts(*_DATE)),
    ("datetime", "time", "time", lambda base, v: (*_parts(*_TIME)(base, v), base.utcoffset(v))),
    ("datetime", "timedelta", "delta", _parts("days", "seconds", "microseconds")),
    ("datetime", "timezone", "zone", lambda base, v: (base.utcoffset(v, None),)),
    ("array", "array", "array",
     lambda base, v: (base.typecode.__get__(v), *base.tolist(v))),
    ("types", "SimpleNamespace", "space",
     lambda base, v: _flat(base.__dict__["__dict__"].__get__(v).items())),
)
# fmt: on
"""Module, class, tag, and the parts by which it compares; a class before what it is made from."""


def _named(value: Any, kind: Any) -> str:
    """The name of a class or a function of Python's own or of a package, and of what is there once;
    empty for what the answer defines, which is another one in each process."""
    if value is Ellipsis or value is NotImplemented:
        return repr(value)
    if issubclass(kind, type):
        module, name = (type.__dict__[word].__get__(value) for word in ("__module__", "__name__"))
        if not type.__dict__["__flags__"].__get__(value) & _MADE_BY_CODE:
            return f"{module}.{name}"
    elif kind in (type(len), type(_named)):
        module, name = value.__module__, value.__name__
    else:
        return ""
    if type(module) is str is type(name) and getattr(sys.modules.get(module), name, None) is value:
        return f"{module}.{name}" if module != _NAME else ""
    return ""


_MADE_BY_CODE = 1 << 9
"""Of a class's flags: Py_TPFLAGS_HEAPTYPE."""
