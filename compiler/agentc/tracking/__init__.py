"""Trackers of a run, from outside of its jobs: which are meant, their programs, what they say.

What the programs do is `agentc.runtime.tracking`; which trackers there are, `agentc.backend_api`.
"""
