"""Says what it takes; nothing of it is run here."""
# /// script
# [tool.agentc]
# inputs = {episodes = "trajectories"}
# output = "trajectories"
# ///
