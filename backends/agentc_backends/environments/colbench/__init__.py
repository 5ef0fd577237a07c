"""ColBench (Zhou et al. 2025, arXiv 2503.15478): an agent works with a human on code."""
