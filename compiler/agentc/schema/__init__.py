"""What may be written in a spec: field tables, structuring, coercion, and the JSON Schema."""
