"""`env.corridor`: four rooms with exactly known values, to check learners by; see README.md."""
