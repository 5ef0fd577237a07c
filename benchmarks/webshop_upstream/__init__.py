"""WebShop as released, for comparisons: its engine from a checkout, and episodes to play in two."""
