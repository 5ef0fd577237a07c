"""Templates: typed, documented fragments of specs that `use:` puts into place (`library.py`);
`agentc.front.expand_templates` applies them."""
