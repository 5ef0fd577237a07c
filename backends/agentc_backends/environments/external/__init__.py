"""What environments of others have in common once our server stands before them: a command that
starts them (`launch.py`), numbered tasks (`task_lists.py`), one reward of an episode (`score.py`),
and a digest that tells whether a number means the same task everywhere (`fingerprint.py`).

Used by `agentgym`, `gymnasium`, `mcp`, `openenv`, which know nothing of each other.
"""
