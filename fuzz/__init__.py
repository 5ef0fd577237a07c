"""Fuzzing of what a stranger's file can reach: the targets, and the harness that drives them."""
