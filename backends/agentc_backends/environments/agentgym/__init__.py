"""Any environment server of the AgentGym family, as released, behind agentc's own protocol.

`dialects.py` says how each member of the family speaks, `upstream.py` talks to it, `job_serve.py`
serves it to rollouts and search.
"""
