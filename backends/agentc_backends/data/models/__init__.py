"""Where models come from: `model.scratch`, `model.hf`, `model.path`. See README.md."""
