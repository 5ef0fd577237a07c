"""Environments of the ETO paper that are declared but not yet served: specs that use them check
and plan, and `agentc run` refuses them by name."""
