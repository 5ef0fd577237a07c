"""Environments in packages that `agentc export` writes: played in process, or served."""
