"""Software stacks as people see them: which are needed, which are there, whole, in use.

`agentc.runtime.software.job_software` builds and uses them; here they are listed, verified and
removed.
"""
