"""A chat template that would hold gigabytes is refused before it does; others render the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentc_backends.data.chat.template_rendering import RestrainedEnvironment, render_bounded

ROOT = Path(__file__).resolve().parents[3]
BOMBS = {
    "product": "{{ 'x' * 2000000000 }}",
    "product the other way": "{{ 2000000000 * 'x' }}",
    "product in a variable": "{% set x = 'x' * 999999999 %}{{ x|length }}",
    "product of a list": "{{ ([1] * 999999999)|length }}",
    "indent": "{{ 'x'|indent(999999999, true) }}",
    "indent by a text": "{{ ('x\n' * 10000)|indent('y' * 100000) }}",
    "center": "{{ 'x'|center(999999999) }}",
    "method center": "{{ 'x'.center(60000000) ~ 'x'.ljust(60000000) }}",
    "zfill": "{{ 'x'.zfill(999999999) }}",
    "percent": "{{ '%999999999d' % 1 }}",
    "percent star": "{{ '%*d' % (999999999, 1) }}",
    "filter format": "{{ '%999999999d'|format(1) }}",
    "method format": "{{ '{:>999999999}'.format(1) }}",
    "nested format": "{{ '{:>{}}'.format(1, 60000000) ~ '{:>{}}'.format(1, 60000000) }}",
    "replace": "{{ ('x' * 100000)|replace('x', 'y' * 100000) }}",
    "method replace": "{{ ('x' * 100000).replace('x', 'y' * 100000) }}",
    "replace nothing": "{{ ('x' * 100000)|replace('', 'y' * 100000) }}",
    "join": "{{ ('x' * 100000)|list|join('y' * 100000) }}",
    "method join": "{{ ('y' * 100000).join(('x' * 100000)|list) }}",
    "doubling": "{% set n = namespace(t='x') %}{% for i in range(40) %}"
    "{% set n.t = n.t ~ n.t %}{% endfor %}",
    "doubling by sum": "{% set n = namespace(t='x') %}{% for i in range(40) %}"
    "{% set n.t = n.t + n.t %}{% endfor %}",
    "doubling of lists": "{% set n = namespace(t=[1]) %}{% for i in range(40) %}"
    "{% set n.t = n.t + n.t %}{% endfor %}",
    "many texts": "{% for i in range(99999) %}{% set x = 'x' * 1000000 %}{% endfor %}",
    "kept texts": "{% set n = namespace(l=[]) %}{% for i in range(1000) %}"
    "{% set n.l = n.l + ['x' * 10000000] %}{% endfor %}",
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}-{{ b }}"
    "{% endfor %}{% endfor %}",
    "empty pieces": "{% for a in range(99999) %}{% for b in range(99999) %}{{ '' }}"
    "{% endfor %}{% endfor %}",
    "a block of output": "{% set x %}{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}"
    "{% endfor %}{% endfor %}{% endset %}{{ x|length }}",
    "a macro": "{% macro m() %}{% for a in range(99999) %}{% for b in range(99999) %}yy{{ b }}"
    "{% endfor %}{% endfor %}{% endmacro %}{{ m()|length }}",
    "power": "{{ 2 ** 2000000000 }}",
    "power of a power": "{{ (10 ** 9999) ** 99999 }}",
    "product of numbers": "{% set n = namespace(x=3) %}{% for i in range(40) %}"
    "{% set n.x = n.x * n.x %}{% endfor %}",
    "JSON": "{{ [[1]]|tojson(indent=999999999) }}",
    "upper": "{% for i in range(9999) %}{% set x = ('ß' * 5000000)|upper %}{% endfor %}",
}
# In 1.5 GiB of address space: what takes more ends in a MemoryError.
_PLAYER = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1536 << 20, 1536 << 20))
from agentc_backends.data.chat.template_rendering import render_bounded
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat import template_rendering
from agentc_backends.data.chat.template_rendering import RestrainedEnvironment
template_rendering.MEMORY_LIMIT = 16_000_000  # for the test's time
ends = {}
for name, text in json.load(sys.stdin).items():
    environment = RestrainedEnvironment(trim_blocks=True)
    environment.filters["tojson"] = lambda x, indent=None: json.dumps(x, indent=indent)
    try:
        ends[name] = repr(render_bounded(lambda: environment.from_string(text).render(), 60.0))[:80]
    except FormatError as error:
        ends[name] = "refused" if "would hold more than" in str(error) else str(error)
    except BaseException as error:
        ends[name] = type(error).__name__
print(json.dumps(ends))
"""
PLAIN = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m.content|trim ~ '\n' }}{% endfor %}",
    "{{ messages|tojson(indent=2) }}{{ messages|map(attribute='role')|join(', ') }}",
    "{% macro show(m) %}[{{ m.role|upper }}: {{ '%-9s' % m.content[:5] }}]{% endmacro %}"
    "{% for m in messages %}{{ show(m) if not loop.first }}{% if loop.index == 3 %}{% break %}"
    "{% endif %}{% endfor %}",
    "{% set n = namespace(t='', l=[]) %}{% for m in messages %}{% set n.t = n.t + m.role %}"
    "{% set n.l = n.l + [m.role.replace('s', 'S')] %}{% endfor %}{{ n.t }}{{ n.l }}{{ '-' * 20 }}",
    "{% set x %}a{{ 1 + 2 * 3 ** 2 % 5 }}{% endset %}{{ x|indent(4, true) }}{{ '{:>8}'.format(x) }}"
    "{{ messages[0].content.split('\n')|length }}{{ {'a': none}|string }}",
)


def test_bombs_are_refused_before_they_take_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PLAYER],
        input=json.dumps(BOMBS),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'compiler'}:{ROOT / 'backends'}"},
    )
    assert done.returncode == 0, done.stderr
    ends = json.loads(done.stdout)
    assert ends.keys() == BOMBS.keys()
    assert {name: end for name, end in ends.items() if end != "refused"} == {}


@pytest.mark.parametrize("template", PLAIN)
def test_templates_render_as_they_did(template: str) -> None:
    messages = [
        {"role": role, "content": f" {role} says\nhé 東 {number} " * 30}
        for number, role in enumerate(("system", "user", "assistant") * 40)
    ]
    texts = []
    for kind in (ImmutableSandboxedEnvironment, RestrainedEnvironment):
        environment = kind(trim_blocks=True, lstrip_blocks=True, extensions=[ext.loopcontrols])
        environment.filters["tojson"] = lambda x, indent=None: json.dumps(x, indent=indent)
        compiled = environment.from_string(template)
        texts.append(render_bounded(lambda compiled=compiled: compiled.render(messages=messages)))
    assert texts[0] == texts[1]
    assert len(texts[0]) > 20
