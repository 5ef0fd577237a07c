"""`serve.scripted`: replies by rule, for tests and dry runs; speaks the same API as real servers.

`job_serve.py` has the rules and their `TextModel`, and serves it.
"""
