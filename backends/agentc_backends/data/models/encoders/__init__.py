"""Models that make features of pictures, as they come into a run."""
