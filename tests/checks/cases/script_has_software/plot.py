"""Asks for packages that no job of agentc's own has."""
# /// script
# dependencies = ["seaborn>=0.13"]
# ///
