"""Configurations of released code, written anew as specs: `agentc init --from-archer`."""
