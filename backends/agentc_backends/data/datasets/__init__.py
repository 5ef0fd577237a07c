"""Conversations from outside: `dataset.path` and `dataset.hf`. See README.md."""
