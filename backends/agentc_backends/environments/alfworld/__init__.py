"""ALFWorld: household tasks in text, as an interpreter of its PDDL rules and grammar.

Use `environment.AlfworldEnvironment` in process, or `python -m` of `job_serve.py` for a server.
Games are those of the benchmark, packed (`job_pack.py`), or invented ones.
"""
