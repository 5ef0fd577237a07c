"""Templates: typed, documented fragments of specs that `use:` puts into place.

`template.py` reads one, `library.py` finds them; `agentc.front.expand_templates` applies them.
"""
