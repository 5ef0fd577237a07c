"""`compare.paired`: several evaluations in one table, with differences paired by task."""
