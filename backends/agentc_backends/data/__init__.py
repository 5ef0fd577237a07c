"""Rows and checkpoints: chat formats, models, datasets, mixing, preference pairs."""
