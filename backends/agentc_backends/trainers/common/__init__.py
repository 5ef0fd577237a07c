"""What the trainers share. Every module can be imported in each trainer's environment: nothing here
needs more than torch, and that only during training.

At compile time: `lowering.py`. In the job: `program.py` (main program and facts), `rows.py` (which
rows, in which order), `processes.py` (several processes), after each step `step_log.py`,
`checks.py` and `checkpoints.py`, and at the end `scoring.py`.
"""
