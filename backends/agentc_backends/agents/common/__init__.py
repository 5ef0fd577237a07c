"""What jobs of agents share: rollouts, searches, revisions and experts, none of which imports
another. (An evaluation is a rollout and its metrics.)

Declarations read settings with `lowering.py`. In a job, `program.py` is the main program,
`connect.py` opens its servers, `episode.py` records an episode, with messages by `prompts.py` and
actions by `actions.py`, and `runner.py` plays many of them, with a `journal.py`.
"""
