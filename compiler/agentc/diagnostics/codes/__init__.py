"""The table of diagnostic codes, by layer: 1 source, 2 structure, 3 expressions and params,
4 names and rounds, 5 types, 6 backends, 7 store and run. One module for each layer.

A code is never given another meaning; a new one takes the next free number of its layer.
"""

from __future__ import annotations

from agentc.diagnostics.codes.backends import BACKENDS
from agentc.diagnostics.codes.checks import CHECKS
from agentc.diagnostics.codes.claims import CLAIMS
from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.codes.expressions import EXPRESSIONS
from agentc.diagnostics.codes.names import NAMES
from agentc.diagnostics.codes.run import RUN
from agentc.diagnostics.codes.searches import SEARCHES
from agentc.diagnostics.codes.settings import SETTINGS
from agentc.diagnostics.codes.source import SOURCE
from agentc.diagnostics.codes.structure import STRUCTURE
from agentc.diagnostics.codes.templates import TEMPLATES

__all__ = ["CODES", "LAYERS", "Code", "code_named"]

LAYERS: tuple[tuple[str, tuple[Code, ...]], ...] = (
    ("Reading the file", SOURCE),
    ("Keys and values", STRUCTURE),
    ("Expressions and params", EXPRESSIONS),
    ("Names, inputs and rounds", NAMES),
    ("Templates, scales and the matrix", TEMPLATES),
    ("Claims", CLAIMS),
    ("Types of inputs, and rules between settings", SETTINGS),
    ("Backends", BACKENDS),
    ("Rules over several settings", CHECKS + SEARCHES),
    ("The store and runs", RUN),
)

CODES: tuple[Code, ...] = tuple(
    sorted((code for _, codes in LAYERS for code in codes), key=lambda code: code.code)
)


def code_named(name: str) -> Code | None:
    """The code of that name, or None."""
    return next((code for code in CODES if code.code == name.upper()), None)
