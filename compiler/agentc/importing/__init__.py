"""Configurations of released code, rewritten as specs: `agentc init --from-archer`."""
