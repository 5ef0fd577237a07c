"""Says which params it has; nothing of it is run here."""
# /// script
# [tool.agentc]
# params = {most_turns = 8, share = 0.5, exact = false}
# ///
