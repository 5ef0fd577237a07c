"""`benchmark.lm_eval`: EleutherAI's lm-eval over the stage's server. `backend.py` declares it,
`job_lm_eval.py` writes its command line, runs it and reads what it wrote."""
