"""Software environments as people see them: which are needed, which are there, whole, in use.

`agentc.runtime.software.environment` builds and uses them; here they are listed, verified and
removed.
"""
