"""ALFWorld: household tasks in text, as an interpreter of its PDDL rules and grammar.

Use `environment.AlfworldEnvironment` in process, or `python -m agentc_backends.alfworld.job_serve`
for a server. Games are those of the benchmark, packed (`job_pack.py`), or invented ones.
"""
