"""`privileged.environment`: what an environment hides of its tasks, for a critic's training.

The one stage whose environment is started with `--privileged`.
"""
