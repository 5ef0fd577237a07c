"""A data set whose rows say which GPUs their job saw."""
