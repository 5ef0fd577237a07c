"""The job runtime: standard library only, Python 3.8 or newer, because it runs inside every
backend's own environment."""
