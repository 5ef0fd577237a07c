"""Emission: a compiled directory that plain Snakemake can run."""

from agentc.emit.directory import compile_to

__all__ = ["compile_to"]
