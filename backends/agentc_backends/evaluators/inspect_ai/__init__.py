"""`benchmark.inspect`: UK AISI's inspect over the stage's server. `backend.py` declares it,
`command.py` writes its command line, `logs.py` reads its logs by its own reader, `results.py` makes
scores of what they say, `job_inspect.py` runs it. The folder is called as inspect's package is, for
`inspect` is a module of the standard library.
"""
