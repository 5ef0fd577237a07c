"""Measures of speed, as ratios next to absolute figures: `python -m benchmarks`."""
