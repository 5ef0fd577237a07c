"""The job runtime: the wrapper that prepares, starts, watches and publishes a job. Standard library
only: it starts before any software stack is there. Programs import `agentc.program`."""
