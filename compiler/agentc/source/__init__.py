"""Source text: files, spans, origins, and the positioned YAML tree."""
