"""`model.gguf`: a GGUF file of llama.cpp as a model in Hugging Face layout. See README.md."""
