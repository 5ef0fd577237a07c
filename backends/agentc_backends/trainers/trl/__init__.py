"""`trl.sft` and `trl.dpo`: training with TRL on rows that are tokenised and masked by
`agentc_backends.data.chat`. See README.md."""
