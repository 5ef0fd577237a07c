"""`mix.share`: agent and general conversations at a stated share of rows. See README.md."""
