"""ColBench's other half: an agent works with a human on a web page. What both halves share is in
the folder above: rounds, splits, the guard."""
