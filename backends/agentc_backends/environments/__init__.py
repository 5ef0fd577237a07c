"""Environments and the server that they have in common."""
