"""The sandbox: boxes in which Python that models wrote runs, on machines that offer one.

`probe` says which box a machine offers, `process` starts an interpreter in it; there is no way to
start one outside. docs/design/sandbox.md has what a box holds.
"""
