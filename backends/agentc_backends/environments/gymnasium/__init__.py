"""Environments of gymnasium's kind, behind agentc's own protocol: text in, text out.

`spaces.py` reads actions out of texts, `telling.py` makes texts of observations, `making.py` makes
the environment, `environment.py` plays it, `job_serve.py` serves it to rollouts and search.
"""
