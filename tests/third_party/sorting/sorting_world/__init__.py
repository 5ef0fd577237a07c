"""A world of somebody else: numbers are to be sorted."""
