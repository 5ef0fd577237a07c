"""ScienceWorld: elementary science in a text world (Wang et al., 2022), on its released simulator.

Use `environment.ScienceWorldEnvironment` over a `pool.JvmPool` in process, or `python -m` of
`job_serve.py` for a server that speaks AgentGym's HTTP protocol. The simulator's jar is that of the
`scienceworld` wheel; its Python class is not used.
"""
