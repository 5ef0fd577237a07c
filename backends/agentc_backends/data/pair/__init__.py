"""`pair.contrast`: contrastive pairs from expert and explored trajectories, by ETO's rules."""
