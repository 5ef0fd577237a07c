"""Files of a user's program: read into the plan by declarations, written out where it starts."""
