"""What was written: declarations with places, before names are bound and values computed."""
