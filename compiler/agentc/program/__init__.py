"""What job programs import: their job file, the environment they opened, the network they refuse.

Standard library only, Python 3.8 or newer: it runs inside the software stack of any backend
or user's script. It imports nothing else of agentc. The wrapper that starts programs is
`agentc.runtime`.
"""
