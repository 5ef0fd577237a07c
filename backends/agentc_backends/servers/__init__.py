"""Model servers that speak the OpenAI protocol."""
