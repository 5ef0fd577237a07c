"""Trackers, as their programs see them: what a run's jobs left in the store is read here, and
handed to a sink of the tracker's. Standard library only, like all of the runtime.

`agentc.tracking` starts these programs; the sinks that ship are `agentc_backends.trackers`.
"""
