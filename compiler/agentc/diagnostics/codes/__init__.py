"""Diagnostic codes, by layer: 1 source, 2 structure, 3 expressions and params, 4 names and rounds,
5 types, 6 backends, 7 store and run. `agentc.reference.codes` has the whole table: a rule
between settings carries its own code (`agentc.passes.checks`).

A code is never given another meaning; a new one takes the next free number of its layer.
"""
