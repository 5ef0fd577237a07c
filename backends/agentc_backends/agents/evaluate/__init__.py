"""`evaluate.agent`: rolls a policy out and measures reward and success, with intervals."""
