"""Searchers: libraries that propose values of params for `agentc search`.

Each folder has `searcher.py`, which declares it, and `job_search.py`, its program.
"""
