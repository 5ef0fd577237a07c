"""The front end: a spec's tree becomes a module (`agentc.ir`), by the tuple of passes in
`read_module.py`; the passes that make a plan of it are `agentc.passes`.
"""
