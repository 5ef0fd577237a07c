"""`agentc run`: what is missing, the driver that makes it, the views that show it, the records.

Everything here works on plan.json as decoded JSON, so that `agentc status` needs no compiler.
"""
