"""Trackers: sinks that a run's curves and results are written to, beside the store.

`declarations.py` declares them; `job_NAME.py` is the program of each: the follower of
`agentc.runtime.tracking` with a sink of that library.
"""
