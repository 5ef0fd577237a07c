"""`serve.transformers`: a small continuous-batching server over Hugging Face models, for CPUs.

`checkpoint.py` loads, `ragged.py` runs several sequences through the model in one pass,
`prefix_cache.py` keeps keys and values between the turns of a conversation, `sampling.py` chooses
tokens, `engine.py` schedules, `served_model.py` adapts it to the HTTP surface in `openai_api`.
"""
