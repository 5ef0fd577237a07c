"""The table of all diagnostic codes, by layer: those of `agentc.diagnostics.codes`, and those that
the rules between settings carry themselves; and the generated page of these rules."""

from __future__ import annotations

from agentc.diagnostics.codes.backends import BACKENDS, ROUNDS, SETTINGS
from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.codes.names import CLAIMS, NAMES, TEMPLATES
from agentc.diagnostics.codes.run import RUN
from agentc.diagnostics.codes.spec import EXPRESSIONS, SOURCE, STRUCTURE
from agentc.passes.checks import RULES, TOPICS, Rule
from agentc.reference.prose import folded, item


def _of_rules(layer: str) -> tuple[Code, ...]:
    """The codes of rules in a layer; several rules may report under one."""
    codes = dict.fromkeys(rule.code for rule in RULES)
    return tuple(code for code in codes if code.code.startswith(layer))


LAYERS: tuple[tuple[str, tuple[Code, ...]], ...] = (
    ("Reading the file", SOURCE),
    ("Keys and values", STRUCTURE),
    ("Expressions and params", EXPRESSIONS),
    ("Names, inputs and rounds", NAMES),
    ("Templates, scales and the matrix", TEMPLATES),
    ("Claims", CLAIMS),
    ("Types of inputs, and rules between settings", (*SETTINGS, *_of_rules("AGC5"))),
    ("Backends", BACKENDS),
    ("Rules over several settings", (*ROUNDS, *_of_rules("AGC6"), *_of_rules("AGC7"))),
    ("The store and runs", RUN),
)

CODES: tuple[Code, ...] = tuple(
    sorted((code for _, codes in LAYERS for code in codes), key=lambda code: code.code)
)


def code_named(name: str) -> Code | None:
    """The code of that name, or None."""
    return next((code for code in CODES if code.code == name.upper()), None)


_INTRODUCTION = (
    "What no single setting can get wrong, checked before anything runs. An error means that "
    "the stage cannot do what is asked; a warning, that it can, but hardly as it is meant. "
    "Each rule says what has to hold, and of which kinds of stages. "
    "Rules about models (contexts, heads, layers) speak where the spec makes the model itself "
    "(`backend: scratch`), since only then are these known. "
    "`agentc explain CODE` says more."
)


def checks_page() -> str:
    """A list for each topic; errors and warnings told apart."""
    lines = [
        "# Rules between settings",
        "",
        *folded(_INTRODUCTION),
    ]
    for topic, rules in TOPICS:
        lines += ["", f"## {topic}", ""]
        lines += [line for rule in rules for line in item(_text(rule))]
    return "\n".join(lines) + "\n"


def _text(rule: Rule) -> str:
    kinds = ", ".join(f"`{kind}`" for kind in rule.kinds)
    code = rule.code.code
    return f"{code}, {rule.severity}: {rule.summary} Of {kinds}."
