"""Expressions: native types, places, and no way to run code or to stall the compiler."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentc.diagnostics import Sink
from agentc.diagnostics.diagnostic import Source, Span
from agentc.front.expressions import MISSING, Evaluator
from agentc.kinds.field import Json
from agentc.source.tree import Computed, Mapping, Scalar, Sequence, Unknown

SPAN = Span(Source("x", "y"), 3, 4, 3, 9)
SCOPE: dict[str, Json] = {
    "seed": 3,
    "lr": 2e-5,
    "name": "eto",
    "digits": "007",
    "flag": True,
    "betas": [0.1, 0.5],
    "round": 2,
}


def run(text: str, scope: dict[str, Json] = SCOPE) -> tuple[object, list[str]]:
    sink = Sink()
    found = Evaluator(sink).evaluate(Scalar(text, True, SPAN), scope)
    codes = [each.code for each in sink.sorted()]
    match found:
        case Computed(json=json):
            return json, codes
        case Scalar(text=text):
            return text, codes
    return found, codes


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ seed }}", 3),
        ("{{ seed + 1 }}", 4),
        ("{{ lr / 2 }}", 1e-5),
        ("{{ name }}", "eto"),
        ("{{ digits }}", "007"),
        ("{{ flag }}", True),
        ("{{ not flag }}", False),
        ("{{ betas }}", [0.1, 0.5]),
        ("{{ betas[round - 1] }}", 0.5),
        ("{{ 0.1 if round == 1 else 0.5 }}", 0.5),
        ("{{ [1, 2] + [seed] }}", [1, 2, 3]),
        ("{{ range(3) }}", [0, 1, 2]),
        ("{{ betas | sum }}", 0.6),
        ("{{ betas | length }}", 2),
        ("{{ max(betas) }}", 0.5),
        ("{{ none }}", None),
        ("{{ 2 ** 10 }}", 1024),
        ("{{ seed % 2 == 1 and flag }}", True),
        ("{{ name | upper }}", "ETO"),
        ("{{ 'a' in name }}", False),
        ("{{ '{{' }}", "{{"),
        ("{{ 7 // 2 }}", 3),
        ("{{ int(7.9) }}", 7),
        ("{{ -seed }}", -3),
        ("{{ seed is odd }}", True),
        ("{{ name ~ '-' ~ seed }}", "eto-3"),
        ("run-{{ seed }}-{{ name }}", "run-3-eto"),
        ("{{ seed }}e-5", "3e-5"),
        ("{{ flag }} and {{ none }}", "true and null"),
        ("{% if x %}{{ seed }}{# no #}", "{% if x %}3{# no #}"),
    ],
)
def test_values(text: str, value: object) -> None:
    found, codes = run(text)
    assert codes == []
    assert found == pytest.approx(value) if isinstance(value, float) else found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{{ sed }}", "AGC301"),
        ("{{ cycler }}", "AGC301"),
        ("{{ self }}", "AGC301"),
        ("{{ seed + }}", "AGC302"),
        ("{{ seed", "AGC302"),
        ("{{ }}", "AGC302"),
        ("{{ 1 / 0 }}", "AGC303"),
        ("{{ 1 + 'a' }}", "AGC303"),
        ("{{ betas[9] }}", "AGC303"),
        ("{{ min() }}", "AGC303"),
        ("{{ float('nan') }}", "AGC303"),
        ("{{ {'a': 1} }}", "AGC304"),
        ("{{ seed.real }}", "AGC304"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "AGC304"),
        ("{{ ''['__class__'] }}", "AGC303"),
        ("{{ name | attr('__class__') }}", "AGC304"),
        ("{{ name | pprint }}", "AGC304"),
        ("{{ name.format(1) }}", "AGC304"),
        ("{{ lipsum() }}", "AGC304"),
        ("{{ ''.join }}", "AGC304"),
        ("{{ range(10 ** 9) }}", "AGC304"),
        ("{{ 10 ** 10 ** 10 }}", "AGC304"),
        ("{{ 'x' * 10 ** 9 }}", "AGC304"),
        ("{{ [[1] * 9999] * 9999 }}", "AGC304"),
        ("{{ '%099999999d' % 1 }}", "AGC304"),
        ("{{ 'ab' | replace('', 'x' * 9999) }}", "AGC304"),
        ("{{ range(9999) | join('x' * 9999) }}", "AGC304"),
        ("{{ " + "(" * 300 + "1" + ")" * 300 + " }}", "AGC304"),
        ("{{ " + "-" * 500 + "1 }}", "AGC304"),
        ("{{ " + "1 + " * 3000 + "1 }}", "AGC304"),
        ("{{ [" + "1, " * 3000 + "1] }}", "AGC304"),
        ("{{ 1 }}" * 500, "AGC304"),
        ("{{ 9e999 }}", "AGC304"),
        ("{{ 9" + "9" * 3000 + " }}", "AGC304"),
    ],
)
def test_refusals(text: str, code: str) -> None:
    start = time.process_time()
    found, codes = run(text)
    assert codes == [code]
    assert isinstance(found, Unknown)
    assert time.process_time() - start < 5


def test_an_unknown_name_gets_the_nearest() -> None:
    sink = Sink()
    Evaluator(sink).evaluate(Scalar("{{ sed }}", True, SPAN), SCOPE, ("round 2 of eto",))
    (found,) = sink.sorted()
    assert found.fix == "did you mean `seed`?"
    assert found.span == SPAN
    assert found.steps == ("round 2 of eto",)


def test_what_depends_on_a_missing_param_is_not_reported_again() -> None:
    found, codes = run("{{ lr * 2 }}", {"lr": MISSING})
    assert isinstance(found, Unknown)
    assert codes == []


def test_trees_without_expressions_are_left_alone() -> None:
    sink = Sink()
    evaluator = Evaluator(sink)
    plain = Sequence((Scalar("a", False, SPAN), Mapping((), SPAN)), SPAN)
    mixed = Sequence((plain, Scalar("{{ seed }}", True, SPAN)), SPAN)
    assert evaluator.evaluate(plain, SCOPE) is plain
    found = evaluator.evaluate(mixed, SCOPE)
    assert isinstance(found, Sequence)
    assert found.items[0] is plain
    assert isinstance(found.items[1], Computed)
    assert evaluator.used == {"seed"}


def test_an_expression_may_differ_from_round_to_round() -> None:
    evaluator = Evaluator(Sink())
    node = Scalar("{{ betas[round - 1] }}", True, SPAN)
    values = [evaluator.evaluate(node, {**SCOPE, "round": number}) for number in (1, 2)]
    assert [value.json for value in values if isinstance(value, Computed)] == [0.1, 0.5]


tokens = st.sampled_from(
    [
        *"()[]{}.,|~+-*/%:'\"=<>! ",
        "seed",
        "betas",
        "name",
        "round",
        "if",
        "else",
        "not",
        "in",
        "is",
        "**",
        "//",
        "==",
        "1",
        "0",
        "2.5",
        "'x'",
        "range",
        "min",
        "int",
        "|length",
        "|join",
        "[0]",
        "_",
        "none",
        "__class__",
        "\\",
        "{{",
        "}}",
    ]
)


@given(st.lists(tokens, max_size=14))
@settings(max_examples=500, deadline=None)
def test_nothing_raises(pieces: list[str]) -> None:
    found, codes = run("{{ " + " ".join(pieces) + " }}")
    assert isinstance(found, Unknown) == bool(codes)


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_no_text_raises(text: str) -> None:
    run("{{" + text)
    run("{{" + text + "}}")


def test_many_evaluations_are_quick() -> None:
    evaluator = Evaluator(Sink())
    node = Scalar("{{ betas[round - 1] * 2 }}", True, SPAN)
    start = time.process_time()
    for number in range(5_000):
        evaluator.evaluate(node, {**SCOPE, "round": number % 2 + 1})
    assert time.process_time() - start < 2
