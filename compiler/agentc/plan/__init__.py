"""The plan: jobs with content keys, leases, sessions; canonical text, comparison, explanation."""
