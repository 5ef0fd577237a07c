"""Models that make features of texts, as they come into a run."""
