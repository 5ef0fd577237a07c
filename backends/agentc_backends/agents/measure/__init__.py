"""`measure.episodes`: metrics of episodes that were played already, and of what searches found.

A search is a way to act as well: its answer to a task is one of the paths of its tree, and counts
as an episode of the policy with the search around it.
"""
