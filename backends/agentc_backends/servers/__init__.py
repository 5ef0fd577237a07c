"""Model servers that speak the OpenAI protocol, and the process that every server of ours is."""
