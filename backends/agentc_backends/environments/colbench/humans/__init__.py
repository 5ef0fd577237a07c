"""Who answers the agent's questions: a script over a task's facts, or a model. Each knows the
reference; `guard.py` watches that a reply does not give it away."""
