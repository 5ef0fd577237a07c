"""References that share a process: each gives what it gives alone, and some may not share."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sandbox.conftest import ROOT

from agentc.runtime.sandbox.boxes import CodeBox
from agentc.runtime.sandbox.nursery import BoxNursery
from agentc_backends.environments.code_tests.calls import (
    CallLimits,
    make_calls,
    make_together,
    nursery_of,
)
from agentc_backends.environments.code_tests.suite import (
    CallSuite,
    leaves_nothing,
    suite_of,
    suites_of,
    verdicts,
)

_PATIENT = CallLimits(seconds=10.0, wall_seconds=300.0)
_CALL = ["f()"]
_LENGTH = "def f(): return len([])"
_SEEN = "how deep calls may be"
_TRICKS = {
    "an attribute of a module": (
        "import math\nmath.pi = 3\ndef f(): return 1",
        "import math\ndef f(): return math.pi",
    ),
    "a module": (
        "import sys\nsys.modules['math'] = sys\ndef f(): return 1",
        "def f():\n    import math\n    return math.floor(1.5)",
    ),
    "the context of decimals": (
        "import decimal\ndecimal.getcontext().prec = 2\ndef f(): return 1",
        "from decimal import Decimal\ndef f(): return str(Decimal(1) / 3)",
    ),
    _SEEN: (
        "import sys\nsys.setrecursionlimit(60)\ndef f(): return 1",
        "def f(n=90): return n and 1 + (lambda g: g(g, n))(lambda g, n: n and g(g, n - 1))",
    ),
    "a class of a module": (
        "from fractions import Fraction\nFraction.limit_denominator = 7\ndef f(): return 1",
        "from fractions import Fraction\ndef f(): return str(Fraction(1, 2).limit_denominator())",
    ),
    "defaults of a module's function": (
        "import textwrap\ntextwrap.shorten.__kwdefaults__ = {}\n"
        "textwrap.wrap.__defaults__ = (3,)\ndef f(): return 1",
        "import textwrap\ndef f(): return textwrap.wrap('aaa bbb')",
    ),
    "a cache of a module": (
        "import re\nre._cache.clear()\nre._MAXCACHE = 'many'\ndef f(): return 1",
        "import re\ndef f(): return re._MAXCACHE",
    ),
    "builtins": ("import builtins\nbuiltins.len = lambda _: 7\ndef f(): return 1", _LENGTH),
    "builtins by their other name": (
        "__builtins__['len'] = lambda _: 7\ndef f(): return 1",
        _LENGTH,
    ),
    "builtins by a name in pieces": (
        "globals()['_' + '_builtins_' + '_']['len'] = lambda _: 7\ndef f(): return 1",
        _LENGTH,
    ),
    "builtins by text": (
        "def f(): return exec('_' '_builtins_' '_[\"len\"] = lambda _: 7')",
        _LENGTH,
    ),
    "builtins by a frame": (
        "def f():\n    g = (x for x in ())\n    g.gi_frame.f_builtins['len'] = lambda _: 7",
        _LENGTH,
    ),
    "builtins by letters that are taken for others": (
        "def f(): \uff45\uff58\uff45\uff43('_' '_builtins_' '_[\"len\"] = lambda _: 7')",
        _LENGTH,
    ),
    "builtins by an attribute's name in pieces": (
        "def f(): getattr(f, '_' '_globals_' '_')['_' '_builtins_' '_']['len'] = lambda _: 7",
        _LENGTH,
    ),
    "a class with methods in pieces": (
        "def f():\n    g = (type('T', (), {'_' '_del_' '_': lambda _: None})() for x in (1,))\n"
        "    exec('print = 7', g.gi_frame.f_builtins)",
        "def f(): return print == 7",
    ),
}
_DOUBTFUL = {
    "import": "def f():\n    import math\n    return 'é'",
    "names in a text": "def f(x): return f'{type(x)}'",
    "a keyword": "def f(x): return dict(x, open=1)",
    "a pattern": "def f(x):\n    match x:\n        case int(real=1): return 'é'",
    "no code": "def f(: é",
    "no text": "def f(): return '\0é'",
    "too deep": f"def f(): return {'(' * 500}'é'{')' * 500}",
    "try": "def f():\n    try: return f()\n    except RecursionError: return 1",
    "class": "class C: pass\ndef f(): return 1",
    "type": "def f(): return type('T', (), {'_' '_del_' '_': lambda _: None})",
    "a hidden attribute": "def f(): return '{0._' '_class_' '_}'.format(f)",
    "chance": "from random import random\ndef f(): return random()",
    "an address": "def f(): return id(f)",
    "a file": "def f(): return open(0)",
    "global": "def f():\n    global x\n    x = 1",
}


@pytest.fixture(scope="module")
def nursery(box: CodeBox) -> Iterator[BoxNursery]:
    with nursery_of(box, _PATIENT) as made:
        yield made


@pytest.mark.parametrize("trick", _TRICKS)
def test_who_changes_what_the_next_one_finds_may_not_share(trick: str, nursery: BoxNursery) -> None:
    """And does change it, where it may."""
    changes, finds = _TRICKS[trick]
    assert not leaves_nothing(changes, _CALL)
    (alone,) = make_calls(nursery, finds, _CALL, _PATIENT)
    shared = make_together(nursery, [(changes, _CALL), (finds, _CALL)], _PATIENT)
    if trick == _SEEN:
        assert shared is None
    else:
        assert shared is not None
        ((found,), _) = shared[1]
        assert (found.value, found.detail) != (alone.value, alone.detail)
    # And in a call of harmless code.
    assert not leaves_nothing("def g(x): return x", [f"g(exec({changes!r}))"])


@pytest.mark.parametrize("code", _DOUBTFUL.values(), ids=_DOUBTFUL)
def test_what_is_doubtful_does_not_share(code: str) -> None:
    assert not leaves_nothing(code, _CALL)


@pytest.mark.parametrize(
    "code",
    [
        "def f(x=[]):\n    # with it\n    x.append(1)\n    return sorted(x, key=lambda y: -y)",
        "def f(x='é'): return {'type': 'open', 'id': f'{x} of class'}  # tries to import",
        "LIMIT = 3\ndef f(): return sum(n ** 2 for n in range(LIMIT)) / 7",
        "def f():\n    if not isinstance(1, int):\n        raise ValueError\n    return {'a': [1]}",
    ],
)
def test_plain_functions_may_share(code: str) -> None:
    assert leaves_nothing(code, _CALL)


def test_builtins_that_reach_further_may_not_be_named() -> None:
    harmless = {name for name in dir(builtins) if leaves_nothing(name, [])}
    assert {"len", "sorted", "ValueError"} < harmless
    reaching = {"eval", "exec", "open", "getattr", "setattr", "vars", "type", "object", "super"}
    assert not harmless & (reaching | {"MemoryError", "RecursionError", "BaseException", "id"})
    for name in reaching:
        for code in (name, f"'é', {name}", f"f'é{{{name}}}'", f"x.{name}, 'é'"):
            assert not leaves_nothing(f"def f(x): return {code}", [])
            assert not leaves_nothing("def f(x): return x", ["f(1)", code])


_MANY = [
    ("def f(x=[]):\n    x.append(1)\n    return x", ["f()", "f()", "f([2])"]),
    ("def f(x): return 1 / x", ["f(0)", "f(2)", "f('a')", "f("]),
    ("def f(x): return f", ["f(1)", "g(1)"]),
    ("x = {}\ndef f(n):\n    x[n] = n\n    return x", ["f(1)", "f(2)", "x"]),
    ("def f(:", ["f(1)"]),
    ("def f(n): return {str(i) for i in range(n)} | {None}", ["f(2)"]),
    ("def f(n): return [float('nan')] * n", ["f(1)", "f(0)"]),
]


@pytest.mark.parametrize("namespace", ["fresh", "published"])
def test_each_gives_what_it_gives_alone(each_box: CodeBox, namespace: str) -> None:
    assert all(leaves_nothing(*each) for each in _MANY)
    with nursery_of(each_box, _PATIENT) as place:
        shared = suites_of(place, _MANY, _PATIENT, namespace)  # type: ignore[arg-type]
        assert shared is not None
        alone = [suite_of(place, *each, _PATIENT, namespace) for each in _MANY]  # type: ignore[arg-type]
        assert [_told(each) for each in shared] == [_told(each) for each in alone]
        # The calls' code is theirs as well.
        for (source, _), one, other in zip(_MANY, shared, alone, strict=True):
            assert verdicts(place, one, source) == verdicts(place, other, source)


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "return f(x)",
        "return 'a' * 10 ** 6",
        "return bytearray(1 << 40)",
        "raise SystemExit",
        "import os; os._exit(0)",
        "import os; os.write(3, b'nothing\\n')",
        "raise MemoryError",
    ],
)
def test_nothing_is_known_of_any_where_one_may_have_been_in_the_others_way(
    nursery: BoxNursery, body: str
) -> None:
    asked = [("def f(x): return x", ["f(1)"]), (f"def f(x):\n    {body}", ["f(1)"])]
    limits = CallLimits(seconds=0.4, wall_seconds=300.0)
    assert make_together(nursery, asked, limits) is None
    assert make_together(nursery, asked[:1] * 2, _PATIENT) is not None


@pytest.mark.slow
def test_colbenchs_references_give_what_they_give_alone(each_box: CodeBox) -> None:
    shared = Path(os.environ.get("AGENTC_SHARED", ROOT.parent / "shared"))
    file = shared / "data/colbench/backend_200.jsonl"
    if not file.is_file():
        pytest.skip(f"no tasks at {file}; set AGENTC_SHARED")
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    asked = [(row["ground_truth"], [*row["test_cases"].values()]) for row in rows]
    asked = [each for each in asked if leaves_nothing(*each)]
    assert len(asked) > 190
    with nursery_of(each_box, _PATIENT) as place:
        alone = [suite_of(place, *each, _PATIENT) for each in asked]
        for size in (32, len(asked)):
            found: list[CallSuite] = []
            for first in range(0, len(asked), size):
                # In both orders, so that each one comes before and after others.
                found += suites_of(place, asked[first : first + size][::-1], _PATIENT)[::-1] or ()  # type: ignore[index]
            assert [_told(each) for each in found] == [_told(each) for each in alone]
        for (reference, _), suite in zip(asked, found, strict=True):
            assert set(verdicts(place, suite, reference)) == {"pass"}


def _told(suite: CallSuite) -> list[object]:
    """What it says of each call."""
    return [
        suite.unusable.get(number, suite.expected[number]) for number in range(len(suite.calls))
    ]
