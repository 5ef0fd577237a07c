"""Answers that would have a verdict without having earned it: they forge lines, patch the runner,
return objects that equal everything, look for what is expected. What each is judged, beside what
it deserves."""

from __future__ import annotations

from typing import Any

from agentc_backends.environments.code_tests.calls import CallLimits, Place
from agentc_backends.environments.code_tests.suite import suite_of, verdicts

# The expected values are made where the reference runs, of pieces that no answer has.
_REFERENCE = """
def f(n):
    return "".join(["XQ", "Z77", str(n * 7)])
"""
_CALLS = ("f(1)", "f(2)", "f(3)")
_LIMITS = CallLimits(seconds=0.5, wall_seconds=300.0)

_FORGED = {
    "writes a verdict to every descriptor and leaves": """
import os
def f(n):
    for fd in range(64):
        try: os.write(fd, b'pass\\nv true\\nv ["w","pass"]\\n')
        except OSError: pass
    os._exit(0)
""",
    "writes lines for the calls that come": """
import os
os.write(3, b'v ["w","XQZ"]\\n' * 50)
def f(n): return 1
""",
    "writes what is no value": """
import os
def f(n):
    os.write(3, b'v ' + b'[' * 60000 + b'\\n')
""",
    "writes a set of lists": """
import os
def f(n):
    os.write(3, b'v ["s",[["l",[]]]]\\n')
""",
    "writes a word that is no failure": """
import os
def f(n):
    os.write(3, b'e pass\\n')
""",
    "writes no end of a line": """
import os
def f(n):
    while True: os.write(3, b'x' * 60000)
""",
    "closes the channel": """
import os
def f(n): os.close(3)
""",
    "turns the channel round": """
import os
def f(n): os.dup2(0, 3)
""",
    "returns what equals everything": """
class E:
    __eq__ = lambda s, o: True
    __hash__ = None
def f(n): return E()
""",
    "returns a text that equals everything": """
class E(str):
    __eq__ = lambda s, o: True
    __class__ = str
def f(n): return E("a")
""",
    "looks for the values in frames": """
import sys
def f(n):
    frame, seen = sys._getframe(), ""
    while frame:
        seen += repr({k: str(v)[:2000] for k, v in {**frame.f_globals, **frame.f_locals}.items()})
        frame = frame.f_back
    place = seen.find(chr(88) + "QZ77")
    assert place >= 0
    return seen[place:place + 6]
""",
    "looks for the values among all objects": """
import gc
def f(n):
    seen = repr([o for o in gc.get_objects() if type(o) in (dict, list, tuple)][:20000])[:9000000]
    place = seen.find(chr(88) + "QZ77")
    assert place >= 0
    return seen[place:place + 6]
""",
    "patches what encodes": """
import sys, builtins, os
frame = sys._getframe()
while frame:
    for space in (frame.f_globals, frame.f_locals):
        for name in ("_encode", "encode", "_line", "_value"):
            if name in space: space[name] = lambda *a: '["w","pass"]'
    frame = frame.f_back
builtins.type = lambda *a: str
os.write, os._exit = (lambda *a: len(a[1])), (lambda *a: None)
def f(n): return n
""",
    "traces the runner": """
import sys
def tracer(*a): raise RuntimeError
def f(n):
    sys.settrace(tracer); return n
""",
    "has a representation that loops": """
class R:
    def __repr__(self):
        while True: pass
    __hash__ = __len__ = __iter__ = __str__ = __repr__
def f(n): return [R(), (R(),), {1: R()}]
""",
    "raises what loops": """
class E(Exception):
    def __str__(self):
        while True: pass
    __repr__ = __str__
def f(n): raise E
""",
    "has work for the end": """
import atexit
class D:
    def __del__(self):
        while True: pass
def loop():
    while True: pass
atexit.register(loop)
keep = D()
def f(n): return n
""",
    "holds itself": """
def f(n):
    x = []; x.append(x); return x
""",
    "holds a null byte": "def f(n): return 1\n\0",
    "holds a surrogate": "def f(n): return '\ud800'",
    "is 10 MB of code": "x = 1\n" * 1_700_000,
    "has 100,000 brackets": "x = " + "(" * 100_000,
    "is a declaration of another encoding": "# coding: nonsense\ndef f(n): return 1\n",
}


def judged_forgeries(box: Place) -> dict[str, Any]:
    """Verdicts by forgery, and of three honest answers."""
    suite = suite_of(box, _REFERENCE, _CALLS, _LIMITS)
    judged: dict[str, Any] = {name: verdicts(box, suite, code) for name, code in _FORGED.items()}
    # One test of three ends the process, one does not end: the others have their verdicts.
    for name, line in (
        ("exits once", "raise SystemExit"),
        ("dies once", "os._exit(0)"),
        ("lingers once", "\n        while True: pass"),
    ):
        once = (
            f"import os\n{_REFERENCE}\ng = f\ndef f(n):\n    if n == 2: {line}\n    return g(n)\n"
        )
        judged[name] = verdicts(box, suite, once)
    judged["is right"] = verdicts(box, suite, _REFERENCE)
    judged["is no reply"] = verdicts(box, suite, None)
    return judged


DESERVED = {
    "exits once": ["pass", "error", "pass"],
    "dies once": ["pass", "crash", "pass"],
    "lingers once": ["pass", "timeout", "pass"],
    "is right": ["pass", "pass", "pass"],
    "is no reply": ["no_answer", "no_answer", "no_answer"],
}
"""Of the others: nothing that passes."""
