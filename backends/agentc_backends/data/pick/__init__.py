"""Policies out of runs of RL."""
