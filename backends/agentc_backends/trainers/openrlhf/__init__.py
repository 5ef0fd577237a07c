"""`openrlhf.sft` and `openrlhf.dpo`: training with OpenRLHF's own trainers, losses and DeepSpeed
strategy, on rows that are tokenised, masked and ordered by agentc. See README.md."""
