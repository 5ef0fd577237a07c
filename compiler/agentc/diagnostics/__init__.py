"""Diagnostics: what is wrong with a spec, as data, and its rendering for people and tools.

Passes report into a `Sink` and go on, so that one run shows every error; only bugs raise.
"""

from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.diagnostic import Diagnostic, Severity
from agentc.diagnostics.render import render_json, render_text
from agentc.diagnostics.sink import Sink

__all__ = [
    "Code",
    "Diagnostic",
    "Severity",
    "Sink",
    "render_json",
    "render_text",
]
