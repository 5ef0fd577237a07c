"""Environments of gymnasium's kind, behind agentc's own protocol: text in, text out.

`spaces.py` reads actions out of texts and writes observations as text, `environment.py` makes and
plays the environment, `job_serve.py` serves it to rollouts and search.
"""
