"""xtuner.sft: supervised fine-tuning by XTuner 0.2 (the trainer that Agent-R uses)."""
