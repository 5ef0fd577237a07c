"""What the trainers share. Every module imports in each trainer's environment: nothing here needs
more than torch, and that only while it trains.

At compile time: `lowering.py`. In the job: `program.py` (main, facts, with `endings.py`), `rows.py`
and `order.py` (what is trained, in which order), `launch.py` and `processes.py` (several of them),
after each step `step_log.py`, `divergence.py`, `deadline.py` and `checkpoints.py`, and at the end
`precision.py`. `attention.py` serves both.
"""
