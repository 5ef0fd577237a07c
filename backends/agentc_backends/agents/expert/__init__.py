"""`expert.planner`: trajectories of an environment's own planner, replayed in the environment.

Messages are made by `agentc_backends.agents.common.prompts`, as those of rollouts are.
"""
