"""What becomes of results: comparisons, verdicts on claims, the report."""
