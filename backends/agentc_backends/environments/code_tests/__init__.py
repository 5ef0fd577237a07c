"""Unit tests of a Python function that a model wrote: its code runs in a box
(`agentc.runtime.sandbox`), its values are compared outside of it."""
