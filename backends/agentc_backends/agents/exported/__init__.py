"""Environments in packages that `agentc dev export` writes: played in process, or served."""
