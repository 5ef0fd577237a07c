"""What adapters of external environments share: a command that starts one (`launch.py`), fields of
specs (`fields.py`), numbered tasks (`task_lists.py`), and rewards (`environment.py`).

Used by `agentgym`, `gymnasium`, `mcp`, `openenv`, which know nothing of each other.
"""
