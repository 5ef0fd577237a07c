"""`benchmark.lm_eval`: EleutherAI's lm-eval over the stage's server. `backend.py` declares it,
`command.py` writes its command line, `results.py` reads what it wrote, `job_lm_eval.py` runs it.
"""
