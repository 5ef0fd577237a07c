"""The OpenAI-compatible surface that agentc's own model servers share (docs/design/contracts.md).

A server supplies a `TextModel` (see `text_model.py`); parsing, replies, errors, the token and the
process's life are the same for all of them. Needs starlette and uvicorn, nothing heavier.
"""
