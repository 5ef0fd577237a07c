"""Advantages: what a critic makes of candidates, less what a reference makes of them."""
