"""Makes files that only other scripts read; nothing of it is run here."""
