"""Files made to harm: each ends in a diagnostic, in bounded time and memory.

The limits are the kernel's: 1 GiB of memory and 20 s of processor for one `agentc check`. Each case
was the worst of its kind that a file within the size limit could do.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HEAD = "agentc: 1\nname: demo\n"
CHECKS = """
import os, resource, sys
import agentc.cli.check
from agentc.backend_api import load_backends
from agentc.cli import main

load_backends()
for line in sys.stdin:
    spec = line.rstrip("\\n")
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(spec + ".said", os.O_WRONLY | os.O_CREAT), 2)
        code = main(["check", spec])
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
"""Each line is a spec, which a fork of this process checks: that starts in no time, and has limits
of its own."""


def alias_bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    return "\n".join(lines)


def rounds(stage: str, count: int = 1) -> str:
    stages = "\n".join(f"        s{i}: {stage}" for i in range(count))
    return f"{HEAD}stages:\n  r:\n    repeat:\n      n: 10000\n      stages:\n{stages}\n"


def params(count: int) -> str:
    first = '  p0: {type: int, default: "{{ 1 }}"}\n'
    rest = (f'  p{i}: {{type: int, default: "{{{{ p{i - 1} + 1 }}}}"}}\n' for i in range(1, count))
    return HEAD + "params:\n" + first + "".join(rest)


CASES: dict[str, tuple[str | bytes, str]] = {
    "alias bomb": (alias_bomb(), "AGC105"),
    "nested lists": ("[" * 200_000, "AGC105"),
    "nested mappings": ("{a: " * 100_000, "AGC105"),
    "nested dashes": ("- " * 200_000, "AGC105"),
    "nested keys": ("? " * 200_000, "AGC105"),
    "a mapping as key of a mapping": ("{" * 200_000, "AGC105"),
    "a large file": (HEAD + "# " + "x" * 600_000, "AGC105"),
    "a large value": (HEAD + "description: " + "x" * 500_000, "AGC105"),
    "a large block": (HEAD + "description: |\n" + "  a\n" * 120_000, "AGC105"),
    "a long key": (HEAD + '? "' + "k" * 100_000 + '"\n: 1\n', "AGC105"),
    "many keys": (HEAD + "".join(f"key{i}: 1\n" for i in range(40_000)), "AGC201"),
    "many anchors": (HEAD + "".join(f"k{i}: &a{i} 1\n" for i in range(25_000)), "AGC201"),
    "many broken stages": (
        HEAD + "stages:\n" + "".join(f"  s{i}: {{kind: dp}}\n" for i in range(25_000)),
        "AGC209",
    ),
    "a fault in the last line": (
        HEAD + "".join(f"k{i}: 1\n" for i in range(40_000)) + "a: [",
        "AGC103",
    ),
    "many documents": ("---\n" * 100_000, "AGC108"),
    "many directives": ("%FOO bar\n" * 10_000 + "---\n" + HEAD, "AGC103"),
    "nothing but comment": ("#" * 500_000, "AGC112"),
    "many stages of many rounds": (rounds("{kind: expert}", 20), "AGC105"),
    "many rounds": (rounds("{kind: expert, split: train}", 9), "AGC403"),
    "long lists in many rounds": (
        rounds("{kind: expert, split: \"{{ 'a' if range(9999)|sort|sum else 'b' }}\"}"),
        "AGC323",
    ),
    "many expressions": (params(9_000), "AGC323"),
    "deep parentheses": (HEAD + 'description: "{{ ' + "(" * 90_000 + ' }}"', "AGC304"),
    "many minus signs": (HEAD + 'description: "{{ ' + "-" * 90_000 + '1 }}"', "AGC304"),
    "many nots": (HEAD + 'description: "{{ ' + "not " * 20_000 + '1 }}"', "AGC304"),
    "a large power": (HEAD + 'description: "{{ 9 ** 9 ** 9 ** 9 }}"', "AGC304"),
    "a large power of a power": (HEAD + 'description: "{{ 9 ** (9 ** 9) }}"', "AGC304"),
    "a large product": (HEAD + "description: \"{{ 'x' * 10 ** 12 }}\"", "AGC304"),
    "a large range": (HEAD + 'description: "{{ range(10 ** 12) }}"', "AGC304"),
    "a format": (HEAD + "description: \"{{ '%99999999d' % 1 }}\"", "AGC304"),
    "an attribute": (HEAD + "description: \"{{ ''.__class__.__mro__ }}\"", "AGC304"),
    "a method": (HEAD + "description: \"{{ 'a'.format('b') }}\"", "AGC304"),
    "a Python object": (HEAD + "description: !!python/object/apply:os.system [id]", "AGC107"),
    "a tag": (HEAD + "description: !include /etc/passwd", "AGC107"),
    "a merge key": (HEAD + "params:\n  <<: {a: 1}\n", "AGC106"),
    "equal keys": (HEAD + "name: other\n", "AGC104"),
    "equal keys by alias": (HEAD + "params: {&a b: {type: int}, *a : {type: int}}\n", "AGC104"),
    "UTF-16": (HEAD.encode("utf-16"), "AGC102"),
    "UTF-16 without a mark": (HEAD.encode("utf-16-le"), "AGC102"),
    "UTF-32": (HEAD.encode("utf-32"), "AGC102"),
    "Latin-1": ((HEAD + "description: café").encode("latin-1"), "AGC102"),
    "half a character": (HEAD.encode() + b"# \xe2\x82", "AGC102"),
    "an overlong character": (HEAD.encode() + b"# \xc0\xaf", "AGC102"),
    "half a surrogate pair": (HEAD.encode() + b"# \xed\xa0\x80", "AGC102"),
    "half a surrogate pair, escaped": (HEAD + 'description: "\\ud800"', "AGC122"),
    "half a surrogate pair, computed": (HEAD + "description: \"{{ '\\\\ud800' }}\"", "AGC122"),
    "a null character": (HEAD + "# \0", "AGC102"),
    "a null character, escaped": (HEAD + 'description: "a\\0b"', "AGC122"),
    "an escape sequence": (HEAD + 'description: "\\e[2J"', "AGC122"),
    "an escape sequence, computed": (HEAD + "description: \"{{ '\\\\x1b[2J' }}\"", "AGC122"),
    "an override of direction": (HEAD + "# \u202eevil\u202c", "AGC121"),
    "an isolate of direction": (HEAD + "params: {\u2066a\u2069: {type: int}}", "AGC121"),
    "an override in a name": (HEAD + 'params: {"a\\u202eb": {type: int, default: 1}}', "AGC121"),
    "an override by escape in a value": (HEAD + 'description: "a\\u202eb"', "AGC121"),
    "an isolate by escape in an expression": (
        HEAD + "params: {a: {type: str, default: \"{{ '\\\\u2066' }}\"}}",
        "AGC121",
    ),
    "a Cyrillic letter in a key": (HEAD + "p\u0430rams: {}", "AGC201"),
    "an invisible letter in a key": (HEAD + "par\u200bams: {}", "AGC201"),
    "a line break in a name": ('agentc: 1\nname: "demo\\n"\n', "AGC210"),
    "a line break in a stage's name": (HEAD + 'stages: {"s\\n": {kind: report}}', "AGC206"),
    "a path as name": ("agentc: 1\nname: ../../etc/cron.d/x\n", "AGC210"),
}


Check = Callable[[Path], tuple[int, bytes]]


@pytest.fixture(scope="module")
def check() -> Iterator[Check]:
    """Checks a spec; returns the exit status and what was said."""
    with subprocess.Popen(
        [sys.executable, "-c", CHECKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(spec: Path) -> tuple[int, bytes]:
            process.stdin.write(f"{spec}\n")
            process.stdin.flush()
            return int(process.stdout.readline()), Path(f"{spec}.said").read_bytes()

        yield run


SLOW = {"long lists in many rounds", "many expressions", "many rounds"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, case in CASES.items()
    ],
)
def test_ends_in_a_diagnostic_within_bounds(
    content: str | bytes, code: str, tmp_path: Path, check: Check
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_bytes(content if isinstance(content, bytes) else content.encode())
    status, said = check(spec)
    shown = said.decode("utf-8")
    assert status == 1, shown[-2000:]
    assert f"error[{code}]" in shown
    assert "Traceback" not in shown
    assert len(shown) < 50_000
    assert all(char == "\n" or char.isprintable() for char in shown)
