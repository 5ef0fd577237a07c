"""Candidates: several replies of a policy at turns of episodes that were played before."""
