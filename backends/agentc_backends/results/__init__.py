"""What becomes of results: one inference, comparisons, verdicts on claims, the report."""
