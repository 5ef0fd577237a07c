"""`serve.scripted`: replies by rule, for tests and dry runs; speaks the same API as real servers.

`rules.py` decides, `scripted_model.py` adapts it to `openai_api`, `job_serve.py` is the program.
"""
