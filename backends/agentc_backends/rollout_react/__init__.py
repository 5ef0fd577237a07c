"""`rollout.react`: lets a served policy act in an environment, many episodes at a time.

`prompt.py` is the one place where messages of an episode are made; `expert_planner` uses it too.
"""
