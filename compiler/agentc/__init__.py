"""agentc: a declarative YAML experiment compiler for LLM-agent research.

The compiler is pure and light; heavy work happens in jobs (see `agentc.runtime`), each in its own
software stack. Start reading at `agentc.passes`.
"""

__version__ = "0.1.0"
