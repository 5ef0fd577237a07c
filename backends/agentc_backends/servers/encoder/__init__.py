"""Features of pictures behind one route, for environments that measure by them."""
