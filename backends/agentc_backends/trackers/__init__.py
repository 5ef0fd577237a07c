"""Trackers: sinks that a run's curves and results are written to, beside the store.

Each folder has `tracker.py`, which declares it, and `job_track.py`, its program: the follower of
`agentc.runtime.tracking` with a sink of that library.
"""
