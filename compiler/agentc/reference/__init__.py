"""Generated documentation: the pages of docs/reference that come from the tables the code uses.

`python -m agentc.reference DIR` writes them, `--check` fails when they are out of date.
"""
