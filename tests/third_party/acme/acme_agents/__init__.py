"""Acme's backends for agentc: pairs by contrast and brevity, and a guessing game."""
