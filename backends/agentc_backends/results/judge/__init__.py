"""`judge.claims`: what a paper claims, held against what was measured, with both sides' noise."""
