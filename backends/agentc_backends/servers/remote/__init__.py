"""`serve.openai`: a remote OpenAI-compatible endpoint; nothing is started."""
