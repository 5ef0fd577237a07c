"""`serve.transformers`: a small continuous-batching server over Hugging Face models, for CPUs.

The engine (`agentc_backends.engine`) runs in a process of its own (`engine_process.py`);
`served_model.py` sends it tasks and adapts it to the HTTP surface in `openai_api`.
"""
