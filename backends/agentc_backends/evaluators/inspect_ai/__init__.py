"""`benchmark.inspect`: UK AISI's inspect over the stage's server. `backend.py` declares it,
`job_inspect.py` writes its command line and runs it, `logs.py` reads its logs by its own reader and
makes scores of what they say. The folder is called as inspect's package is, for `inspect` is a
module of the standard library.
"""
