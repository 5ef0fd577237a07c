"""What jobs of agents share: rollouts, searches, revisions and experts, none of which imports
another. (An evaluation is a rollout and its metrics.)

At compile time: `lowering.py`, `parse.py` (names of settings). In the job: `program.py` (main),
`failures.py`, `connect.py` (servers), `tasks.py`, `prompt.py`, `parse.py` and `episode.py` (one
episode), `seeds.py`, `runner.py` and `journal.py` (many of them).
"""
