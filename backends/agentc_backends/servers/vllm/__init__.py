"""`serve.vllm`: vLLM's own server, started through its own command line.

`backend.py` lowers fields to flags, `job_serve.py` starts the CLI, `gate.py` is middleware inside
the server: the run's token on every route, and no request field ignored in silence.
"""
