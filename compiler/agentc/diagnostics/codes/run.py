"""Diagnostic codes of layer 7: the store and runs."""

from agentc.diagnostics.codes.code import Code

RUN: tuple[Code, ...] = ()
