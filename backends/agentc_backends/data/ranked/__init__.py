"""`pair.ranked`: preference pairs of single turns, drawn from candidates by their ranks."""
